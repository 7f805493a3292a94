-- Purpose: what could not be read. Parameters: none. Grain: a rejected line or file. Columns: file, line, reason.
SELECT file, line, reason FROM quarantine ORDER BY file, line NULLS FIRST, reason
