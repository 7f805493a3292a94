-- Purpose: the calls to analyse, in time order.
-- Parameters: $service (NULL = all), $since, $until (UTC, NULL = open). Grain: a call. Columns: as in `calls`.
SELECT * EXCLUDE (segments, marker_at, marker_ttl)
FROM calls
WHERE ($service IS NULL OR service = $service)
  AND ($since IS NULL OR started_at >= $since)
  AND ($until IS NULL OR started_at < $until)
ORDER BY started_at, call_id
