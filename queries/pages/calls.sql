-- Purpose: single calls, those first that missed most.
-- Parameters: $since, $until (times, NULL = open, until exclusive), $service, $provider, $model, $cause (NULL = all),
-- $most (how many). Grain: a call.
-- Columns: call_id, started_at, service, provider, model, cause, input, read, write, output, missed_tokens, usd, usd_missed, ttft_ms, status, session_id, response_id, trace_id, file, line.
WITH chosen AS (
    SELECT *
    FROM calls
    WHERE ($since IS NULL OR started_at >= $since) AND ($until IS NULL OR started_at < $until)
      AND ($service IS NULL OR service = $service)
      AND ($provider IS NULL OR provider = $provider)
      AND ($model IS NULL OR CASE WHEN served_model <> '' THEN served_model ELSE model END = $model)
), dearest AS (
    SELECT chosen.call_id, cause, explained_calls.missed_tokens, usd_input, usd_output, usd_missed
    FROM explained_calls JOIN (SELECT call_id, started_at FROM chosen) AS chosen USING (call_id)
    WHERE $cause IS NULL OR cause = $cause
    ORDER BY usd_missed DESC NULLS LAST, started_at, call_id
    LIMIT $most
)
SELECT
    call_id, started_at, service, provider, CASE WHEN served_model <> '' THEN served_model ELSE model END AS model, cause,
    uncached + "read" + write_5m + write_30m + write_1h + write_12h + write_unknown AS input,
    "read", write_5m + write_30m + write_1h + write_12h + write_unknown AS "write", output,
    dearest.missed_tokens, (usd_input + usd_output)::DOUBLE AS usd, usd_missed::DOUBLE AS usd_missed,
    ttft_ms, status, session_id, response_id, trace_id, file, line
FROM chosen JOIN dearest USING (call_id)
ORDER BY usd_missed DESC NULLS LAST, started_at, call_id
