-- Purpose: the store's schema version. Parameters: none. Grain: one row. Columns: version.
SELECT version FROM store_version
