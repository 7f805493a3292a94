-- Purpose: tables of the open database; none means that it is new.
-- Parameters: none. Grain: a table. Columns: table_name.
SELECT table_name FROM information_schema.tables
