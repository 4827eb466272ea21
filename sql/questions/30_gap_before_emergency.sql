-- How many days before each emergency was the patient last seen?
SELECT subject_id,
       ragged_filter(time_delta_days, ragged_any(code == 'VISIT_START//EMERGENCY', -1)) AS days
FROM meds('tests/data/synthea-meds') WHERE len(days) > 0 ORDER BY 1 LIMIT 5;
