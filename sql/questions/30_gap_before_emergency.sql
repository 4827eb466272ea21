-- How many days before each emergency was the patient last seen?
SELECT subject_id,
       ragged_filter(date_diff('day', ragged_shift(time, 1), time), emergency)
           AS days_since_last_event
FROM (SELECT subject_id, time, ragged_any(code == 'VISIT_START//EMERGENCY', -1) AS emergency
      FROM meds('tests/data/synthea-meds'))
WHERE ragged_any(emergency)
ORDER BY subject_id
LIMIT 5;
