-- Purpose: adds new contents (`incoming_rows`, an Arrow table); their numbers are new by construction.
-- Parameters: none.
INSERT INTO contents BY NAME SELECT * FROM incoming_rows
