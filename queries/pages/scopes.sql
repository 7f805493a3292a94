-- Purpose: what there is to filter by, and from when to when. Parameters: none.
-- Grain: a service, provider and model. Columns: service, provider, model, first_day, last_day.
SELECT service, provider, model, min(day) AS first_day, max(day) AS last_day
FROM daily
GROUP BY service, provider, model
ORDER BY service, provider, model
