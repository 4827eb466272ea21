-- How many days pass between visits: mean, median, standard deviation, 90th percentile of each
-- patient?
SELECT subject_id, ragged_count(days) AS gaps, round(ragged_mean(days), 1) AS mean,
       ragged_median(days) AS median, round(ragged_std(days), 1) AS sd,
       round(ragged_quantile(days, 0.9), 1) AS p90
FROM (SELECT subject_id, date_diff('day', ragged_shift(time, 1), time) AS days
      FROM (SELECT subject_id,
                   ragged_filter(time, ragged_any(code LIKE 'VISIT_START//%', -1)) AS time
            FROM meds('tests/data/synthea-meds')))
ORDER BY mean, subject_id
LIMIT 5;
