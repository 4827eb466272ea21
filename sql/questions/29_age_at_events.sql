-- How old is a patient at each of the last three events, and in which age group?
SELECT subject_id, floor(date_diff('day', ragged_first(time), time)[-3:] / 365.25) AS age,
       ragged_where(age < 18, 'child', ragged_where(age < 65, 'adult', 'senior')) AS age_group
FROM meds('tests/data/synthea-meds') ORDER BY 1 LIMIT 5;
