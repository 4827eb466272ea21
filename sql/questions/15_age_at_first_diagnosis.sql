-- How old are patients when anemia is first diagnosed?
SELECT subject_id, round((ragged_min(time) FILTER (
           WHERE ragged_any(code == 'CONDITION//271737000', -1)) - ragged_first(time))
           / INTERVAL '365.25 days', 1) AS age
FROM meds('tests/data/synthea-meds') ORDER BY age, subject_id LIMIT 5;
