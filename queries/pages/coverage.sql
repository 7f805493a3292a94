-- Purpose: how much is known of the calls of each service and model.
-- Parameters: $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all).
-- Grain: a service, provider and model.
-- Columns: service, provider, model, calls, usage_missing, usage_partial, unpriced, with_prompt.
SELECT
    service, provider, model,
    sum(calls)::BIGINT AS calls,
    sum(usage_missing)::BIGINT AS usage_missing,
    sum(usage_partial)::BIGINT AS usage_partial,
    sum(unpriced)::BIGINT AS unpriced,
    sum(with_prompt)::BIGINT AS with_prompt
FROM daily
WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until)
  AND ($service IS NULL OR service = $service)
  AND ($provider IS NULL OR provider = $provider)
  AND ($model IS NULL OR model = $model)
GROUP BY service, provider, model
ORDER BY calls DESC, service, provider, model
