-- What is the moving average of three body weights, at the last four of each patient?
SELECT subject_id,
       ragged_rolling(ragged_compress(numeric_value, code LIKE '%//kg'), 3, 'mean')[-4:] AS kg
FROM meds('tests/data/synthea-meds') LIMIT 5;
