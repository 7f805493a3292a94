-- Purpose: sums by any two dimensions: service, provider, model, cause, day or week.
-- Parameters: $across, $down (a dimension's name), $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all).
-- Grain: a value of each dimension.
-- Columns: across, down, calls, input, read, output, reported_input, reported_read, usd, usd_missed.
WITH named AS (
    SELECT
        *,
        CASE $across
            WHEN 'service' THEN service WHEN 'provider' THEN provider WHEN 'model' THEN model
            WHEN 'cause' THEN CASE WHEN cause = '' THEN 'nothing missed' ELSE cause END
            WHEN 'week' THEN strftime(date_trunc('week', day), '%Y-%m-%d')
            ELSE strftime(day, '%Y-%m-%d')
        END AS across,
        CASE $down
            WHEN 'service' THEN service WHEN 'provider' THEN provider WHEN 'model' THEN model
            WHEN 'cause' THEN CASE WHEN cause = '' THEN 'nothing missed' ELSE cause END
            WHEN 'week' THEN strftime(date_trunc('week', day), '%Y-%m-%d')
            ELSE strftime(day, '%Y-%m-%d')
        END AS down
    FROM daily
    WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until)
      AND ($service IS NULL OR service = $service)
      AND ($provider IS NULL OR provider = $provider)
      AND ($model IS NULL OR model = $model)
)
SELECT
    across, down,
    sum(calls)::BIGINT AS calls,
    sum(uncached + "read" + "write")::BIGINT AS input,
    sum("read")::BIGINT AS "read",
    sum(output)::BIGINT AS output,
    sum(reported_input)::BIGINT AS reported_input,
    sum(reported_read)::BIGINT AS reported_read,
    (sum(usd_input) + sum(usd_output))::DOUBLE AS usd,
    sum(usd_missed)::DOUBLE AS usd_missed
FROM named
GROUP BY across, down
ORDER BY across, down
