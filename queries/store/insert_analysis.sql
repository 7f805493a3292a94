-- Purpose: keeps a report as the last one. Parameters: $made_at (UTC), $report (JSON text).
INSERT INTO analyses VALUES ($made_at, $report)
