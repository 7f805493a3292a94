-- Purpose: the dense number of each known content, to go on numbering. Parameters: none. Grain: a content.
-- Columns: key, content.
SELECT key, content FROM contents
