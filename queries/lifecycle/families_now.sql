-- Purpose: the family that the last analysis puts the calls of each finding in. An id goes by the static text that calls
-- shared at the time; once a fix has moved text, they share another piece of it. The example calls stay what they were.
-- Parameters: none. Grain: a finding id some example call of which the last analysis knows.
-- Columns: id, family.
WITH told AS (
    SELECT unnest(from_json(report -> '$.findings', '["JSON"]')) AS finding
    FROM analyses
), example AS (
    SELECT DISTINCT
        finding ->> '$.id' AS id,
        unnest(from_json(finding -> '$.examples[*].call_id', '["VARCHAR"]')) AS call_id
    FROM told
)
SELECT id, family
FROM example
JOIN explained_calls USING (call_id)
WHERE family <> ''
GROUP BY id, family
QUALIFY row_number() OVER (PARTITION BY id ORDER BY count(*) DESC, family) = 1
ORDER BY id
