-- Purpose: takes over the calls that were observed once. Parameters: none.
INSERT INTO calls BY NAME
SELECT * FROM incoming
SEMI JOIN (SELECT call_id FROM incoming GROUP BY call_id HAVING count(*) = 1) USING (call_id)
