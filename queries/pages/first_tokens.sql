-- Purpose: time to the first token of calls that read from cache and of calls that did not, ms, of the biggest services.
-- Parameters: $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all), $most (how many services).
-- Grain: a service and hit. Columns: service, hit, calls, median_ms, p90_ms.
WITH chosen AS (
    SELECT service, "read" > 0 AS hit, ttft_ms
    FROM calls
    WHERE ttft_ms IS NOT NULL AND usage_state = 'reported'
      AND ($since IS NULL OR started_at >= $since) AND ($until IS NULL OR started_at < $until)
      AND ($service IS NULL OR service = $service)
      AND ($provider IS NULL OR provider = $provider)
      AND ($model IS NULL OR CASE WHEN served_model <> '' THEN served_model ELSE model END = $model)
), biggest AS (
    SELECT service FROM chosen GROUP BY service ORDER BY count(*) DESC, service LIMIT $most
)
SELECT
    service, hit, count(*) AS calls,
    quantile_cont(ttft_ms, 0.5) AS median_ms, quantile_cont(ttft_ms, 0.9) AS p90_ms
FROM chosen SEMI JOIN biggest USING (service)
GROUP BY service, hit
ORDER BY service, hit
