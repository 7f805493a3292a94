-- Purpose: the daily sums of the last analysis. Parameters: none.
INSERT INTO daily BY NAME
SELECT
    started_at::DATE AS day, service, provider,
    CASE WHEN served_model <> '' THEN served_model ELSE model END AS model,
    cause, claimed, finding,
    count(*) AS calls,
    count(*) FILTER (usage_state = 'missing') AS usage_missing,
    count(*) FILTER (usage_state = 'partial') AS usage_partial,
    count(*) FILTER (usage_state <> 'missing' AND usd_input IS NULL) AS unpriced,
    count(*) FILTER (segments IS NOT NULL) AS with_prompt,
    sum(uncached) AS uncached, sum("read") AS "read",
    sum(write_5m + write_30m + write_1h + write_12h + write_unknown) AS "write",
    sum(output) AS output,
    coalesce(sum(uncached + "read" + write_5m + write_30m + write_1h + write_12h + write_unknown)
        FILTER (usage_state = 'reported'), 0) AS reported_input,
    coalesce(sum("read") FILTER (usage_state = 'reported'), 0) AS reported_read,
    sum(explained_calls.missed_tokens) AS missed_tokens,
    sum(usd_input) AS usd_input, sum(usd_output) AS usd_output,
    sum(usd_without_cache) AS usd_without_cache, sum(usd_missed) AS usd_missed
FROM calls JOIN explained_calls USING (call_id)
GROUP BY ALL
ORDER BY day, service, provider, model
