-- How many days after the fortieth birthday is the first emergency? Without one, the patient is
-- censored at the last event.
SELECT subject_id, (ragged_first(time) + INTERVAL '40 years')::DATE AS start,
       ragged_last(time)::DATE AS until,
       ragged_min(time::DATE[]) FILTER (
           WHERE time >= start AND ragged_any(code == 'VISIT_START//EMERGENCY', -1)) AS emergency,
       coalesce(emergency, until) - start AS days
FROM meds('tests/data/synthea-meds') WHERE until >= start ORDER BY days, 1 LIMIT 8;
