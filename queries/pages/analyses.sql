-- Purpose: when the store was analysed. Parameters: none. Grain: an analysis. Columns: made_at.
SELECT made_at FROM analyses ORDER BY made_at
