-- How many different codes does each of the last three days of a patient have?
SELECT subject_id, time[-3:]::DATE[] AS days, ragged_nunique(code, -1)[-3:] AS codes
FROM meds('tests/data/synthea-meds') ORDER BY 1 LIMIT 5;
