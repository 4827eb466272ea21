-- What is the mean systolic pressure of each patient in each month, here the last three? A
-- month without a measurement keeps the last value.
SELECT subject_id, months[-3:]::DATE[] AS months,
       ragged_ffill(ragged_window(systolic, time, months, 'mean', after => INTERVAL '1 month',
                                  closed => '[)'))[-3:] AS systolic
FROM (SELECT *, ragged_filter(numeric_value, code == 'LAB//8480-6//mm[Hg]') AS systolic,
             generate_series(date_trunc('month', ragged_min(time)), ragged_max(time),
                             INTERVAL '1 month') AS months
      FROM meds('tests/data/synthea-meds'))
ORDER BY 1 LIMIT 5;
