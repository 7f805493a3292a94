-- Purpose: store version 2: what the last analysis found of each call, for pages and for the check of fixes.
-- Grain: explained_calls one row a call of the last analysis. Parameters: none.
-- Dollars are NULL where price or usage is not known. Tokens are estimates, hence DOUBLE.
CREATE TABLE explained_calls (
    call_id VARCHAR NOT NULL,
    family VARCHAR NOT NULL,       -- hex id of the static content that the family shares; '' = none
    cause VARCHAR NOT NULL,        -- '' = nothing was missed
    claimed BOOLEAN NOT NULL,      -- a finding gets it
    finding VARCHAR NOT NULL,      -- its id; '' = none
    missed_tokens DOUBLE NOT NULL,
    predicted_read DOUBLE NOT NULL,
    marker_inferred BOOLEAN NOT NULL,
    usd_input DECIMAL(28, 12),
    usd_output DECIMAL(28, 12),
    usd_without_cache DECIMAL(28, 12), -- what the input would have cost uncached
    usd_missed DECIMAL(28, 12)         -- missed_tokens at the price of uncached less that of read
);
UPDATE store_version SET version = 2;
