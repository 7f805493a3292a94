-- Purpose: how long after the call before each call of a family came, in steps that double or more.
-- Parameters: $family, $service, $model, $lifetime_s (NULL = not known).
-- Grain: a step. Columns: upto_s (right edge, seconds; NULL = open), alive (within the lifetime), calls.
WITH members AS (
    SELECT epoch(started_at) AS at_s
    FROM calls SEMI JOIN (SELECT call_id FROM explained_calls WHERE family = $family) USING (call_id)
    WHERE service = $service AND CASE WHEN served_model <> '' THEN served_model ELSE model END = $model
), pauses AS (
    SELECT at_s - lag(at_s) OVER (ORDER BY at_s) AS pause_s FROM members QUALIFY pause_s IS NOT NULL
), steps AS (
    SELECT unnest([1, 10, 30, 60, 300, 900, 1800, 3600, 21600, 86400]) AS edge_s
), stepped AS (
    SELECT pause_s, (SELECT min(edge_s) FROM steps WHERE pause_s <= edge_s) AS upto_s FROM pauses
)
SELECT upto_s, coalesce(pause_s <= $lifetime_s, true) AS alive, count(*) AS calls
FROM stepped
GROUP BY ALL
ORDER BY upto_s NULLS LAST, alive DESC
