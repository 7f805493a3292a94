-- Purpose: keeps rejected lines (`incoming_rows`), each once however often its file is read.
-- Parameters: none.
INSERT INTO quarantine BY NAME
SELECT file, line, reason FROM incoming_rows
EXCEPT
SELECT file, line, reason FROM quarantine
