-- Purpose: calls, tokens by bucket and dollars of each day. Dollars are NULL where none of its calls has a price.
-- Parameters: $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all).
-- Grain: a day.
-- Columns: day, calls, usage_missing, usage_partial, unpriced, with_prompt, uncached, read, write, output, reported_input, reported_read, usd_input, usd_output, usd_without_cache, usd_missed, usd_claimed.
SELECT
    day,
    sum(calls)::BIGINT AS calls,
    sum(usage_missing)::BIGINT AS usage_missing,
    sum(usage_partial)::BIGINT AS usage_partial,
    sum(unpriced)::BIGINT AS unpriced,
    sum(with_prompt)::BIGINT AS with_prompt,
    sum(uncached)::BIGINT AS uncached,
    sum("read")::BIGINT AS "read",
    sum("write")::BIGINT AS "write",
    sum(output)::BIGINT AS output,
    sum(reported_input)::BIGINT AS reported_input,
    sum(reported_read)::BIGINT AS reported_read,
    sum(usd_input)::DOUBLE AS usd_input,
    sum(usd_output)::DOUBLE AS usd_output,
    sum(usd_without_cache)::DOUBLE AS usd_without_cache,
    sum(usd_missed)::DOUBLE AS usd_missed,
    coalesce(sum(usd_missed) FILTER (claimed), 0)::DOUBLE AS usd_claimed
FROM daily
WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until)
  AND ($service IS NULL OR service = $service)
  AND ($provider IS NULL OR provider = $provider)
  AND ($model IS NULL OR model = $model)
GROUP BY day
ORDER BY day
