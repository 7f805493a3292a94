-- Purpose: brings calls that are in the store already beside their new observations, so that they are merged with them.
-- Parameters: none.
INSERT INTO incoming BY NAME SELECT * FROM calls SEMI JOIN (SELECT DISTINCT call_id FROM incoming) USING (call_id)
