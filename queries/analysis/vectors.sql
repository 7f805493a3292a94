-- Purpose: vectors of the questions of the calls to analyse, in the same order as analysis/calls.
-- Parameters: $service (NULL = all), $since, $until (UTC, NULL = open). Grain: a call.
-- Columns: vector (16-bit floats, little endian, of length 1; NULL = none), embedded_by, scope_key, context_key.
SELECT vector, embedded_by, scope_key, context_key
FROM calls
WHERE ($service IS NULL OR service = $service)
  AND ($since IS NULL OR started_at >= $since)
  AND ($until IS NULL OR started_at < $until)
ORDER BY started_at, call_id
