-- Purpose: store version 3: what pages draw, summed once when a store is analysed, so that they never read all calls.
-- Grain: a day (UTC), service, provider, model that served, cause, claimed and finding of the last analysis.
-- Parameters: none. Columns are as in `explained_calls`; `input` and `write` are sums of disjoint buckets.
CREATE TABLE daily (
    day DATE NOT NULL,
    service VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    cause VARCHAR NOT NULL,
    claimed BOOLEAN NOT NULL,
    finding VARCHAR NOT NULL,
    calls BIGINT NOT NULL,
    usage_missing BIGINT NOT NULL,
    usage_partial BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,      -- usage is known, the price is not
    with_prompt BIGINT NOT NULL,
    uncached BIGINT NOT NULL,
    "read" BIGINT NOT NULL,
    "write" BIGINT NOT NULL,
    output BIGINT NOT NULL,
    reported_input BIGINT NOT NULL, -- of the calls that say how much was read
    reported_read BIGINT NOT NULL,
    missed_tokens DOUBLE NOT NULL,
    usd_input DECIMAL(38, 12),
    usd_output DECIMAL(38, 12),
    usd_without_cache DECIMAL(38, 12),
    usd_missed DECIMAL(38, 12)
);
UPDATE store_version SET version = 3;
