-- Purpose: the calls of one family, whatever service or model they went to, and their cause in the last analysis.
-- Parameters: $family. Grain: a call. Columns: as in `calls` without prompt and place, then cause, markers.
SELECT
    calls.* EXCLUDE (segments, marker_at, marker_ttl, settings, file, line),
    explained_calls.cause,
    array_to_string(list_sort(list_distinct(coalesce(marker_ttl, []))), '+') AS markers
FROM calls
JOIN explained_calls USING (call_id)
WHERE explained_calls.family = $family
ORDER BY calls.started_at, calls.call_id
