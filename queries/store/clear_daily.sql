-- Purpose: forgets the daily sums of the analysis before. Parameters: none.
DELETE FROM daily
