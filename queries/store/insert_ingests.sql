-- Purpose: notes which files were read when (`incoming_rows`, one row a file). Parameters: none.
INSERT INTO ingests BY NAME
SELECT (SELECT coalesce(max(ingest), 0) + 1 FROM ingests) AS ingest, * FROM incoming_rows
