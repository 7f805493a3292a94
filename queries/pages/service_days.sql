-- Purpose: the share of prompt tokens read from cache, by service and day, of the services that send most.
-- Parameters: $since, $until (days, NULL = open, until exclusive), $service, $provider, $model (NULL = all), $most (how many services).
-- Grain: a day and service. Columns: day, service, input, read.
WITH chosen AS (
    SELECT day, service, reported_input, reported_read
    FROM daily
    WHERE ($since IS NULL OR day >= $since) AND ($until IS NULL OR day < $until)
  AND ($service IS NULL OR service = $service)
  AND ($provider IS NULL OR provider = $provider)
  AND ($model IS NULL OR model = $model)
), biggest AS (
    SELECT service FROM chosen GROUP BY service ORDER BY sum(reported_input) DESC, service LIMIT $most
)
SELECT day, service, sum(reported_input)::BIGINT AS input, sum(reported_read)::BIGINT AS "read"
FROM chosen SEMI JOIN biggest USING (service)
GROUP BY day, service
HAVING sum(reported_input) > 0
ORDER BY day, service
