-- Purpose: adds new contents (`incoming_rows`, an Arrow table); their numbers are new by construction.
INSERT INTO contents BY NAME SELECT * FROM incoming_rows
