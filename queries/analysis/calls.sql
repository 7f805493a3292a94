-- Purpose: the calls to analyse, in time order.
-- Parameters: $service (NULL = all), $since, $until (UTC, NULL = open). Grain: a call.
-- Columns: as in `calls` without the lists and what belongs to vectors, and prompt_known.
SELECT
    * EXCLUDE (segments, marker_at, marker_ttl, embedded_by, vector, scope_key, context_key),
    segments IS NOT NULL AS prompt_known
FROM calls
WHERE ($service IS NULL OR service = $service)
  AND ($since IS NULL OR started_at >= $since)
  AND ($until IS NULL OR started_at < $until)
ORDER BY started_at, call_id
