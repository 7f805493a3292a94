-- Purpose: how many calls the store holds. Parameters: none. Grain: one row. Columns: calls.
SELECT count(*) AS calls FROM calls
