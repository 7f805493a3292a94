-- Purpose: the store, version 1. Times are UTC TIMESTAMP (microseconds), token counts are whole tokens.
-- Grain: calls one row a call; contents one row a distinct segment; quarantine one row a rejected line. Parameters: none.
CREATE TABLE store_version (version INTEGER NOT NULL);
INSERT INTO store_version VALUES (1);

CREATE TABLE ingests (
    ingest INTEGER NOT NULL,
    file VARCHAR NOT NULL,
    read_at TIMESTAMP NOT NULL,
    calls BIGINT NOT NULL,
    rejected BIGINT NOT NULL
);

CREATE TABLE calls (
    call_id VARCHAR NOT NULL,
    started_at TIMESTAMP NOT NULL,
    service VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    api VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    served_model VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    region VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    span_id VARCHAR NOT NULL,
    parent_span_id VARCHAR NOT NULL,
    response_id VARCHAR NOT NULL,
    request_id VARCHAR NOT NULL,
    instrumentation VARCHAR NOT NULL,
    status SMALLINT,
    error VARCHAR NOT NULL,
    aborted BOOLEAN NOT NULL,
    duration_ms DOUBLE,
    ttft_ms DOUBLE,
    usage_state VARCHAR NOT NULL,
    uncached BIGINT NOT NULL,
    "read" BIGINT NOT NULL,
    write_5m BIGINT NOT NULL,
    write_30m BIGINT NOT NULL,
    write_1h BIGINT NOT NULL,
    write_12h BIGINT NOT NULL,
    write_unknown BIGINT NOT NULL,
    output BIGINT NOT NULL,
    reasoning BIGINT NOT NULL,
    tier VARCHAR NOT NULL,
    speed VARCHAR NOT NULL,
    geo VARCHAR NOT NULL,
    miss_reason VARCHAR NOT NULL,
    missed_tokens BIGINT,
    usage_notes VARCHAR NOT NULL,
    prompt_lost VARCHAR NOT NULL,
    segments INTEGER[],
    marker_at INTEGER[],
    marker_ttl VARCHAR[],
    key_id VARCHAR NOT NULL,
    auto_marker VARCHAR NOT NULL,
    cache_mode VARCHAR NOT NULL,
    cache_ttl VARCHAR NOT NULL,
    cache_key VARCHAR NOT NULL,
    cached_content VARCHAR NOT NULL,
    settings VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    line BIGINT NOT NULL
);

CREATE TABLE contents (
    content INTEGER NOT NULL,
    key UBIGINT NOT NULL,
    level VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    bytes BIGINT NOT NULL,
    skeleton_id UBIGINT NOT NULL,
    canonical_id UBIGINT NOT NULL,
    piece_ids UBIGINT[] NOT NULL,
    piece_bytes INTEGER[] NOT NULL,
    piece_kinds VARCHAR[] NOT NULL,
    piece_continues BOOLEAN[] NOT NULL
);

CREATE TABLE quarantine (
    file VARCHAR NOT NULL,
    line BIGINT,
    reason VARCHAR NOT NULL
);

-- Reports as JSON, schema version inside: the last one is what `show` reads.
CREATE TABLE analyses (made_at TIMESTAMP NOT NULL, report JSON NOT NULL);
