-- How old is a patient at each of the last three events, and in which age group?
SELECT subject_id, ragged_tail(time, 3)::DATE[] AS days, round(age, 1) AS age,
       ragged_map(age, lambda a: CASE WHEN a < 18 THEN 'child'
                                      WHEN a < 65 THEN 'adult' ELSE 'senior' END) AS age_group
FROM (SELECT subject_id, time,
             ragged_tail(date_diff('day', ragged_first(time), time) / 365.25, 3) AS age
      FROM meds('tests/data/synthea-meds'))
ORDER BY subject_id
LIMIT 5;
