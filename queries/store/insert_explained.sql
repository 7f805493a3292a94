-- Purpose: what this analysis found of each call. Parameters: none; rows come from incoming_rows, columns as in the table.
INSERT INTO explained_calls BY NAME SELECT * FROM incoming_rows
