-- Purpose: takes from a page's connection whatever reaches beyond its own file. Parameters: none.
SET enable_external_access = false;
SET lock_configuration = true
