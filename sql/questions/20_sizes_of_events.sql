-- How many measurements does a day of each patient have: median, 90th percentile, most?
SELECT subject_id,
       round(ragged_quantile(ragged_lengths(code, 2), [0.5, 0.9, 1.0]), 1) AS measurements
FROM meds('tests/data/synthea-meds') ORDER BY 1 LIMIT 5;
