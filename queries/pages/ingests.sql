-- Purpose: which files were read when, and what came of them. Parameters: none. Grain: a file of an ingest.
-- Columns: ingest, file, read_at, calls, rejected.
SELECT ingest, file, read_at, calls, rejected FROM ingests ORDER BY ingest DESC, file
