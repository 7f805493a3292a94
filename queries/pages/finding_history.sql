-- Purpose: what each analysis said each finding is worth a week: when it was first seen, and its trend.
-- Parameters: none. Grain: an analysis and finding. Columns: made_at, id, usd_per_week.
WITH told AS (
    SELECT made_at, unnest((report -> '$.findings')::JSON[]) AS finding
    FROM analyses
)
SELECT made_at, finding ->> '$.id' AS id, (finding ->> '$.saving_usd_per_week.high')::DOUBLE AS usd_per_week
FROM told
ORDER BY made_at, id
