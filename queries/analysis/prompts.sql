-- Purpose: the prompts of the calls to analyse, in the same order as analysis/calls. A request that failed has cached
-- nothing, and one whose history is kept by the provider shows only its end: both count as calls without a prompt.
-- Parameters: $service (NULL = all), $since, $until (UTC, NULL = open). Grain: a call.
-- Columns: segments, marker_at, marker_ttl (lists; NULL = the prompt is not known).
SELECT
    CASE WHEN coalesce(status, 200) < 400 AND NOT contains(settings, 'history=') THEN segments END AS segments,
    CASE WHEN coalesce(status, 200) < 400 AND NOT contains(settings, 'history=') THEN marker_at END AS marker_at,
    CASE WHEN coalesce(status, 200) < 400 AND NOT contains(settings, 'history=') THEN marker_ttl END AS marker_ttl
FROM calls
WHERE ($service IS NULL OR service = $service)
  AND ($since IS NULL OR started_at >= $since)
  AND ($until IS NULL OR started_at < $until)
ORDER BY started_at, call_id
