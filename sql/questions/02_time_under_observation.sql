-- How long does the record of each patient reach, from the first visit to the last event?
SELECT subject_id,
       ragged_max(time) - ragged_min(time) FILTER (WHERE ragged_any(code LIKE 'VISIT%', -1)) AS span
FROM meds('tests/data/synthea-meds') ORDER BY span DESC LIMIT 5;
