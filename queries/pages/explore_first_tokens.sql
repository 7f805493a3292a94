-- Purpose: median time to the first token by any two dimensions: service, provider, model, cause, day or week.
-- Parameters: $across, $down (a dimension's name), $since, $until (days, NULL = open, until exclusive), $service,
-- $provider, $model (NULL = all). Grain: a value of each dimension. Columns: across, down, calls, median_ms.
WITH chosen AS (
    SELECT
        calls.service, provider, CASE WHEN served_model <> '' THEN served_model ELSE model END AS served,
        started_at::DATE AS day, ttft_ms, coalesce(cause, '') AS cause
    FROM calls LEFT JOIN (
        SELECT call_id, cause FROM explained_calls WHERE 'cause' IN ($across, $down)
    ) USING (call_id)
    WHERE ttft_ms IS NOT NULL
      AND ($since IS NULL OR started_at >= $since) AND ($until IS NULL OR started_at < $until)
      AND ($service IS NULL OR calls.service = $service)
      AND ($provider IS NULL OR provider = $provider)
      AND ($model IS NULL OR CASE WHEN served_model <> '' THEN served_model ELSE model END = $model)
)
SELECT
    CASE $across
        WHEN 'service' THEN service WHEN 'provider' THEN provider WHEN 'model' THEN served
        WHEN 'cause' THEN CASE WHEN cause = '' THEN 'nothing missed' ELSE cause END
        WHEN 'week' THEN strftime(date_trunc('week', day), '%Y-%m-%d')
        ELSE strftime(day, '%Y-%m-%d')
    END AS across,
    CASE $down
        WHEN 'service' THEN service WHEN 'provider' THEN provider WHEN 'model' THEN served
        WHEN 'cause' THEN CASE WHEN cause = '' THEN 'nothing missed' ELSE cause END
        WHEN 'week' THEN strftime(date_trunc('week', day), '%Y-%m-%d')
        ELSE strftime(day, '%Y-%m-%d')
    END AS down,
    count(*) AS calls, quantile_cont(ttft_ms, 0.5) AS median_ms
FROM chosen
GROUP BY across, down
ORDER BY across, down
