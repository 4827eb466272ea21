-- Which body mass index was known at each positive label, and how old was it?
SELECT subject_id, prediction_time,
       ragged_last(numeric_value) FILTER (WHERE code == 'LAB//39156-5//kg/m2') AS bmi,
       prediction_time - ragged_last(time) FILTER (
           WHERE ragged_any(code == 'LAB//39156-5//kg/m2', -1)) AS age
FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels')
WHERE boolean_value AND bmi > 0 ORDER BY age DESC, 1, 2 LIMIT 5;
