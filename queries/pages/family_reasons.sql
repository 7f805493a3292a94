-- Purpose: what the provider itself said of the misses of a family. Parameters: $family, $service, $model.
-- Grain: a reason. Columns: miss_reason, calls, missed_tokens (the provider's own count, NULL = it gave none).
SELECT miss_reason, count(*) AS calls, sum(missed_tokens)::BIGINT AS missed_tokens
FROM calls SEMI JOIN (SELECT call_id FROM explained_calls WHERE family = $family) USING (call_id)
WHERE service = $service AND CASE WHEN served_model <> '' THEN served_model ELSE model END = $model
  AND miss_reason <> ''
GROUP BY miss_reason
ORDER BY calls DESC, miss_reason
