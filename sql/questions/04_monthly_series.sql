-- What is the mean systolic pressure of patient 10 in each month? A month without a measurement
-- keeps the last value.
SELECT unnest(months)::DATE AS month, unnest(means) AS measured,
       unnest(ragged_ffill(means)) AS filled
FROM (SELECT months, ragged_mean(ragged_group(systolic, month, months), -1) AS means
      FROM (SELECT systolic, month,
                   generate_series(ragged_min(month), ragged_max(month), INTERVAL '1 month') AS months
            FROM (SELECT ragged_compress(numeric_value, hit) AS systolic,
                         date_trunc('month', ragged_compress(ragged_broadcast(time, hit), hit))
                             AS month
                  FROM (SELECT time, numeric_value, code == 'LAB//8480-6//mm[Hg]' AS hit
                        FROM meds('tests/data/synthea-meds') WHERE subject_id = 10))))
ORDER BY month DESC
LIMIT 8;
