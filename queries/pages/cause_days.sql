-- Purpose: what was missed on each day, by cause: calls, tokens, and dollars that reading them would have saved.
-- Parameters: $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all).
-- Grain: a day, cause and claimed. Columns: day, cause, claimed, calls, missed_tokens, usd_missed.
SELECT
    day, cause, claimed,
    sum(calls)::BIGINT AS calls,
    sum(missed_tokens)::DOUBLE AS missed_tokens,
    coalesce(sum(usd_missed), 0)::DOUBLE AS usd_missed
FROM daily
WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until)
  AND ($service IS NULL OR service = $service)
  AND ($provider IS NULL OR provider = $provider)
  AND ($model IS NULL OR model = $model) AND cause <> ''
GROUP BY day, cause, claimed
ORDER BY day, cause, claimed
