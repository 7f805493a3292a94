-- Purpose: forgets what the analysis before found of each call. Parameters: none.
DELETE FROM explained_calls
