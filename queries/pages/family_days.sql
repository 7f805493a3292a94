-- Purpose: the calls of one family by day and cause. Parameters: $family, $service, $model.
-- Grain: a day and cause ('' = nothing was missed). Columns: at, cause, calls, usd_missed.
SELECT
    started_at::DATE AS "at", cause, count(*) AS calls, coalesce(sum(usd_missed), 0)::DOUBLE AS usd_missed
FROM calls JOIN (SELECT call_id, cause, usd_missed FROM explained_calls WHERE family = $family) USING (call_id)
WHERE service = $service AND CASE WHEN served_model <> '' THEN served_model ELSE model END = $model
GROUP BY ALL
ORDER BY "at", cause
