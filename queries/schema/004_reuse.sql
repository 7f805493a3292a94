-- Purpose: store version 4: what tells whether a response cache could have answered a call, without its text.
-- Grain: a call. Parameters: none. Keys are keyed hashes, 32 hex digits; '' = not known, as of calls that other
-- instrumentations saw, or that came before this version.
ALTER TABLE calls ADD COLUMN exact_key VARCHAR DEFAULT '';    -- of the request in one spelling
ALTER TABLE calls ADD COLUMN answer_key VARCHAR DEFAULT '';   -- of the answer's words in one spelling
ALTER TABLE calls ADD COLUMN answer_kind VARCHAR DEFAULT '';  -- whole, tool_call, refused, cut
ALTER TABLE calls ADD COLUMN temperature DOUBLE;              -- as asked for; NULL = the provider's default
ALTER TABLE calls ADD COLUMN choices BIGINT DEFAULT 1;        -- answers asked for, or given
ALTER TABLE calls ADD COLUMN streamed BOOLEAN DEFAULT false;
ALTER TABLE calls ADD COLUMN live_tools BOOLEAN DEFAULT false; -- the provider runs tools by itself
ALTER TABLE calls ADD COLUMN embedded_by VARCHAR DEFAULT '';  -- what made the vector: two cannot be compared
ALTER TABLE calls ADD COLUMN vector BLOB;                     -- of the question: 16-bit floats, of length 1; NULL = none
ALTER TABLE calls ADD COLUMN scope_key VARCHAR DEFAULT '';    -- of what must be the same to share its answer
ALTER TABLE calls ADD COLUMN context_key VARCHAR DEFAULT '';  -- of the conversation before the question
ALTER TABLE calls ALTER COLUMN exact_key SET NOT NULL;
ALTER TABLE calls ALTER COLUMN answer_key SET NOT NULL;
ALTER TABLE calls ALTER COLUMN answer_kind SET NOT NULL;
ALTER TABLE calls ALTER COLUMN choices SET NOT NULL;
ALTER TABLE calls ALTER COLUMN streamed SET NOT NULL;
ALTER TABLE calls ALTER COLUMN live_tools SET NOT NULL;
ALTER TABLE calls ALTER COLUMN embedded_by SET NOT NULL;
ALTER TABLE calls ALTER COLUMN scope_key SET NOT NULL;
ALTER TABLE calls ALTER COLUMN context_key SET NOT NULL;
UPDATE store_version SET version = 4;
