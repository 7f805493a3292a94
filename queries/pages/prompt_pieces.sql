-- Purpose: the prompts of some calls piece by piece, without text. Parameters: $calls (list of call ids).
-- Grain: a piece, in the order sent.
-- Columns: call_id, segment (from 1), level, kind, role, marker (its TTL, '' = none), piece_id, bytes, volatile.
WITH placed AS (
    SELECT call_id, unnest(segments) AS content, generate_subscripts(segments, 1) AS segment, marker_at, marker_ttl
    FROM calls
    WHERE list_contains($calls, call_id)
), pieces AS (
    SELECT
        call_id, segment, level, kind, role,
        coalesce(marker_ttl[list_position(marker_at, segment - 1)], '') AS marker,
        unnest(piece_ids) AS piece_id, unnest(piece_bytes)::BIGINT AS bytes, unnest(piece_kinds) AS volatile,
        generate_subscripts(piece_ids, 1) AS place
    FROM placed JOIN contents USING (content)
)
SELECT * EXCLUDE (place) FROM pieces ORDER BY call_id, segment, place
