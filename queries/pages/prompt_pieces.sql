-- Purpose: a call's prompt piece by piece, without text. Parameters: $call_id. Grain: a piece, in the order sent.
-- Columns: segment (from 1), level, kind, role, marker (its TTL, '' = none), piece_id, bytes, volatile.
WITH placed AS (
    SELECT unnest(segments) AS content, generate_subscripts(segments, 1) AS segment, marker_at, marker_ttl
    FROM calls
    WHERE call_id = $call_id
), pieces AS (
    SELECT
        segment, level, kind, role,
        coalesce(marker_ttl[list_position(marker_at, segment - 1)], '') AS marker,
        unnest(piece_ids) AS piece_id, unnest(piece_bytes)::BIGINT AS bytes, unnest(piece_kinds) AS volatile,
        generate_subscripts(piece_ids, 1) AS place
    FROM placed JOIN contents USING (content)
)
SELECT * EXCLUDE (place) FROM pieces ORDER BY segment, place
