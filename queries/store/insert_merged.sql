-- Purpose: makes one call of several observations: usage from the one that reports most, the prompt from the one
-- closest to the wire (one with holes, as a transcript has it, comes last), what response caches go by from one that
-- has it, everything else from the first that knows it. Parameters: none.
INSERT INTO calls BY NAME
WITH ranked AS (
    SELECT *,
        CASE usage_state WHEN 'reported' THEN 0 WHEN 'partial' THEN 10 ELSE 20 END
            + (write_unknown > 0)::INTEGER + (instrumentation <> 'prefixscope')::INTEGER AS usage_rank,
        CASE WHEN segments IS NULL THEN 4 WHEN instrumentation = 'prefixscope' THEN 0
             WHEN instrumentation = 'request_log' THEN 1 WHEN contains(settings, 'history=') THEN 3
             ELSE 2 END AS prompt_rank
    FROM incoming
    SEMI JOIN (SELECT call_id FROM incoming GROUP BY call_id HAVING count(*) > 1) USING (call_id)
), merged AS (
    SELECT
        call_id,
        min(started_at) AS started_at,
        coalesce(first(service ORDER BY prompt_rank, file, line) FILTER (service <> ''), '') AS service,
        coalesce(first(provider ORDER BY prompt_rank, file, line) FILTER (provider <> ''), '') AS provider,
        coalesce(first(api ORDER BY prompt_rank, file, line) FILTER (api <> ''), '') AS api,
        coalesce(first(model ORDER BY prompt_rank, file, line) FILTER (model <> ''), '') AS model,
        coalesce(first(account ORDER BY prompt_rank, file, line) FILTER (account <> ''), '') AS account,
        coalesce(first(region ORDER BY prompt_rank, file, line) FILTER (region <> ''), '') AS region,
        coalesce(first(session_id ORDER BY prompt_rank, file, line) FILTER (session_id <> ''), '') AS session_id,
        coalesce(first(trace_id ORDER BY prompt_rank, file, line) FILTER (trace_id <> ''), '') AS trace_id,
        coalesce(first(span_id ORDER BY prompt_rank, file, line) FILTER (span_id <> ''), '') AS span_id,
        coalesce(first(parent_span_id ORDER BY prompt_rank, file, line) FILTER (parent_span_id <> ''), '')
            AS parent_span_id,
        coalesce(first(response_id ORDER BY prompt_rank, file, line) FILTER (response_id <> ''), '') AS response_id,
        coalesce(first(request_id ORDER BY prompt_rank, file, line) FILTER (request_id <> ''), '') AS request_id,
        coalesce(first(error ORDER BY prompt_rank, file, line) FILTER (error <> ''), '') AS error,
        first(status ORDER BY prompt_rank, file, line) FILTER (status IS NOT NULL) AS status,
        first(duration_ms ORDER BY prompt_rank, file, line) FILTER (duration_ms IS NOT NULL) AS duration_ms,
        first(ttft_ms ORDER BY prompt_rank, file, line) FILTER (ttft_ms IS NOT NULL) AS ttft_ms,
        bool_and(aborted) AS aborted,
        first({
            'usage_state': usage_state, 'uncached': uncached, 'read': "read", 'write_5m': write_5m,
            'write_30m': write_30m, 'write_1h': write_1h, 'write_12h': write_12h, 'write_unknown': write_unknown,
            'output': output, 'reasoning': reasoning, 'usage_notes': usage_notes
        } ORDER BY usage_rank, file, line) AS best_usage,
        coalesce(first(served_model ORDER BY usage_rank, file, line) FILTER (served_model <> ''), '') AS served_model,
        coalesce(first(tier ORDER BY usage_rank, file, line) FILTER (tier <> ''), '') AS tier,
        coalesce(first(speed ORDER BY usage_rank, file, line) FILTER (speed <> ''), '') AS speed,
        coalesce(first(geo ORDER BY usage_rank, file, line) FILTER (geo <> ''), '') AS geo,
        coalesce(first(miss_reason ORDER BY usage_rank, file, line) FILTER (miss_reason <> ''), '') AS miss_reason,
        first(missed_tokens ORDER BY usage_rank, file, line) FILTER (missed_tokens IS NOT NULL) AS missed_tokens,
        first({
            'instrumentation': instrumentation, 'prompt_lost': prompt_lost, 'segments': segments,
            'marker_at': marker_at, 'marker_ttl': marker_ttl, 'key_id': key_id, 'auto_marker': auto_marker,
            'cache_mode': cache_mode, 'cache_ttl': cache_ttl, 'cache_key': cache_key,
            'cached_content': cached_content, 'settings': settings, 'file': file, 'line': line
        } ORDER BY prompt_rank, file, line) AS best_prompt,
        first({
            'exact_key': exact_key, 'answer_key': answer_key, 'answer_kind': answer_kind, 'temperature': temperature,
            'choices': choices, 'streamed': streamed, 'live_tools': live_tools
        } ORDER BY exact_key = '', answer_key = '', prompt_rank, file, line) AS best_reuse,
        first({
            'embedded_by': embedded_by, 'vector': vector, 'scope_key': scope_key, 'context_key': context_key
        } ORDER BY vector IS NULL, prompt_rank, file, line) AS best_vector
    FROM ranked
    GROUP BY call_id
)
SELECT
    merged.* EXCLUDE (best_usage, best_prompt, best_reuse, best_vector),
    unnest(best_usage), unnest(best_prompt), unnest(best_reuse), unnest(best_vector)
FROM merged
