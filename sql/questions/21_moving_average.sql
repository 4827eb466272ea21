-- What is the moving average of three body weights, at the last four of each patient?
SELECT subject_id, ragged_tail(kg, 4) AS kg,
       ragged_tail(round(ragged_rolling(kg, 3, 'mean'), 1), 4) AS moving
FROM (SELECT subject_id, ragged_compress(numeric_value, code == 'LAB//29463-7//kg') AS kg
      FROM meds('tests/data/synthea-meds'))
ORDER BY subject_id
LIMIT 5;
