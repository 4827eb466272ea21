-- In whom did HbA1c rise twice in a row, and when were the three values first complete?
SELECT subject_id, ragged_min(ragged_filter(time, ragged_any(hit, -1))) FILTER (
           WHERE ragged_rolling(ragged_diff(ragged_compress(numeric_value, hit)) > 0, 2, 'all'))
           AS first_time
FROM (SELECT *, code == 'LAB//4548-4//%' AS hit FROM meds('tests/data/synthea-meds'))
WHERE first_time IS NOT NULL ORDER BY 1 LIMIT 5;
