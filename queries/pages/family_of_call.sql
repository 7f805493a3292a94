-- Purpose: the family that a finding's calls belong to, from any of its examples.
-- Parameters: $calls (list of call ids). Grain: a call; the first one. Columns: family.
SELECT family FROM explained_calls WHERE list_contains($calls, call_id) AND family <> '' ORDER BY call_id LIMIT 1
