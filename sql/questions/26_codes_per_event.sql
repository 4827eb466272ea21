-- How many different codes does each of the last three days of a patient have?
SELECT subject_id, ragged_tail(time, 3)::DATE[] AS days,
       ragged_tail(ragged_nunique(code, -1), 3) AS codes
FROM meds('tests/data/synthea-meds')
ORDER BY subject_id
LIMIT 5;
