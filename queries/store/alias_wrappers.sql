-- Purpose: gives a wrapper span and the span it wraps one call id, where no response id tells that they are one call.
-- A wrapper encloses the other in time within one trace, asks for the same model, comes from another instrumentation
-- or is its direct parent, and reports the same tokens or none. A direct parent may end a moment earlier: botocore's
-- span of a stream does. Parameters: none.
UPDATE incoming AS wrapper
SET call_id = wrapped.call_id
FROM incoming AS wrapped
WHERE wrapper.trace_id <> '' AND wrapper.trace_id = wrapped.trace_id
  AND wrapper.span_id <> wrapped.span_id
  AND wrapper.response_id = ''
  AND (wrapper.instrumentation <> wrapped.instrumentation OR wrapped.parent_span_id = wrapper.span_id)
  AND wrapper.started_at <= wrapped.started_at
  AND wrapper.started_at + to_microseconds((1000 * coalesce(wrapper.duration_ms, 0))::BIGINT)
      + CASE WHEN wrapped.parent_span_id = wrapper.span_id THEN INTERVAL 50 MILLISECONDS ELSE INTERVAL 0 SECONDS END
      >= wrapped.started_at + to_microseconds((1000 * coalesce(wrapped.duration_ms, 0))::BIGINT)
  AND (wrapper.model IN (wrapped.model, wrapped.served_model, '') OR wrapped.model = '')
  AND ((wrapper.uncached + wrapper."read" + wrapper.write_5m + wrapper.write_30m + wrapper.write_1h
          + wrapper.write_12h + wrapper.write_unknown, wrapper.output)
       = (wrapped.uncached + wrapped."read" + wrapped.write_5m + wrapped.write_30m + wrapped.write_1h
          + wrapped.write_12h + wrapped.write_unknown, wrapped.output)
       OR wrapper.usage_state = 'missing' OR wrapped.usage_state = 'missing')
