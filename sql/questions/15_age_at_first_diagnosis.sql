-- How old are patients when anemia is first diagnosed?
SELECT subject_id, first_time, round(date_diff('day', birth, first_time) / 365.25, 1) AS age
FROM (SELECT subject_id, ragged_first(time) AS birth,
             ragged_min(time) FILTER (WHERE ragged_any(code == 'CONDITION//271737000', -1))
                 AS first_time
      FROM meds('tests/data/synthea-meds'))
WHERE first_time IS NOT NULL
ORDER BY age, subject_id
LIMIT 5;
