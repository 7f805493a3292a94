-- Purpose: a call of a family and the one before it, to be laid over each other.
-- Parameters: $call_id, $family, $service, $model. Grain: a call, the earlier first.
-- Columns: call_id, started_at, read, input, cause, missed_tokens, miss_reason, response_id, session_id, file, line.
WITH members AS (
    SELECT call_id, cause, explained_calls.missed_tokens
    FROM explained_calls
    WHERE family = $family
), chosen AS (
    SELECT
        call_id, started_at, "read",
        uncached + "read" + write_5m + write_30m + write_1h + write_12h + write_unknown AS input,
        members.cause, members.missed_tokens, miss_reason, response_id, session_id, file, line
    FROM calls JOIN members USING (call_id)
    WHERE service = $service AND CASE WHEN served_model <> '' THEN served_model ELSE model END = $model
      AND segments IS NOT NULL
      AND started_at <= (SELECT started_at FROM calls WHERE call_id = $call_id)
    ORDER BY started_at DESC, (call_id = $call_id) DESC
    LIMIT 2
)
SELECT * FROM chosen ORDER BY started_at
