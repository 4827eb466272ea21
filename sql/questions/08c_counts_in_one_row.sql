-- Which drug precedes each positive label most often, and how often, in one row per label?
SELECT subject_id, prediction_time,
       ragged_histogram_agg(ragged_compress(code, code LIKE 'DRUG%'), 1) AS drug
FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels')
WHERE boolean_value GROUP BY 1, 2 ORDER BY 2 DESC, 1 LIMIT 5;
