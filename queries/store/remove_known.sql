-- Purpose: makes room for the merged row of calls that were in the store already. Parameters: none.
DELETE FROM calls WHERE call_id IN (SELECT call_id FROM incoming)
