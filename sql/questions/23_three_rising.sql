-- In whom did HbA1c rise twice in a row, and when were the three values first complete?
SELECT subject_id, ragged_min(time) FILTER (WHERE rising) AS first_time, ragged_sum(rising) AS times
FROM (SELECT subject_id, time, ragged_rolling(ragged_diff(a1c) > 0, 2, 'all') AS rising
      FROM (SELECT subject_id, ragged_compress(numeric_value, hit) AS a1c,
                   ragged_compress(ragged_broadcast(time, hit), hit) AS time
            FROM (SELECT *, code == 'LAB//4548-4//%' AS hit FROM meds('tests/data/synthea-meds'))))
WHERE ragged_any(rising)
ORDER BY subject_id
LIMIT 5;
