-- Purpose: the last report. Parameters: none. Grain: at most one row. Columns: report (JSON text).
SELECT report::VARCHAR AS report FROM analyses ORDER BY made_at DESC LIMIT 1
