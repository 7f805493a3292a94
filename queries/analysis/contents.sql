-- Purpose: every content by its number. Parameters: none. Grain: a content. Columns: as in `contents`.
SELECT * FROM contents ORDER BY content
