-- How often does each drug precede each positive label in a year, as rows for a sparse matrix?
SELECT subject_id, prediction_time, code, count(*) AS times
FROM ragged_explode((FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels')))
WHERE boolean_value AND code LIKE 'DRUG%' AND time > prediction_time - INTERVAL '365 days'
GROUP BY ALL ORDER BY times DESC, 1, 2, 3 LIMIT 5;
