-- Purpose: an empty staging table for the observations of one ingest. Parameters: none.
CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM calls LIMIT 0
