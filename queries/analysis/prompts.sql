-- Purpose: the prompts of the calls to analyse, in the same order as analysis/calls. A request that failed has cached
-- nothing, and one whose history is kept by the provider shows only its end: both count as calls without a prompt. A
-- transcript shows where its prompts have text that it does not hold (segments of kind unrecorded): they are prompts.
-- Parameters: $service (NULL = all), $since, $until (UTC, NULL = open). Grain: a call.
-- Columns: segments, marker_at, marker_ttl (lists; NULL = the prompt is not known).
WITH unrecorded AS (
    SELECT list(content) AS contents FROM contents WHERE kind = 'unrecorded'
), chosen AS (
    SELECT
        started_at, call_id, segments, marker_at, marker_ttl,
        coalesce(status, 200) < 400 AND CASE
            WHEN contains(settings, 'history=')
                THEN coalesce(list_has_any(segments, (SELECT contents FROM unrecorded)), false)
            ELSE true
        END AS shown
    FROM calls
    WHERE ($service IS NULL OR service = $service)
      AND ($since IS NULL OR started_at >= $since)
      AND ($until IS NULL OR started_at < $until)
)
SELECT
    CASE WHEN shown THEN segments END AS segments,
    CASE WHEN shown THEN marker_at END AS marker_at,
    CASE WHEN shown THEN marker_ttl END AS marker_ttl
FROM chosen
ORDER BY started_at, call_id
