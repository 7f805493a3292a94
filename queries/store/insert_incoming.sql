-- Purpose: adds a batch of observations (`incoming_rows`, an Arrow table) to the staging table.
-- Parameters: none.
INSERT INTO incoming BY NAME
SELECT * EXCLUDE (started_ns), make_timestamp(started_ns // 1000) AS started_at
FROM incoming_rows
