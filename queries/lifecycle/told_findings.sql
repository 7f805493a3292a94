-- Purpose: every finding that some report told, as the last of those reports told it.
-- Parameters: none. Grain: a finding id.
-- Columns: id, first_seen, last_seen, finding (JSON text).
WITH told AS (
    SELECT made_at, unnest(from_json(report -> '$.findings', '["JSON"]')) AS finding
    FROM analyses
)
SELECT
    finding ->> '$.id' AS id,
    min(made_at) AS first_seen,
    max(made_at) AS last_seen,
    arg_max(finding, made_at)::VARCHAR AS finding
FROM told
GROUP BY id
ORDER BY first_seen, id
