-- Purpose: how many calls the store holds, and from when. Parameters: none. Grain: one row.
-- Columns: calls, first_at, last_at (UTC).
SELECT count(*) AS calls, min(started_at) AS first_at, max(started_at) AS last_at FROM calls
