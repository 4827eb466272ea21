-- How many days pass between visits: mean, standard deviation, median and 90th percentile of each
-- patient?
SELECT subject_id, round(ragged_mean(days), 1) AS mean, round(ragged_std(days), 1) AS sd,
       round(ragged_quantile(days, [0.5, 0.9]), 1) AS median_p90
FROM (SELECT subject_id, epoch(ragged_diff(ragged_filter(
                 time, ragged_any(code LIKE 'VISIT_START%', -1)))) / 86400 AS days
      FROM meds('tests/data/synthea-meds'))
ORDER BY mean, subject_id LIMIT 5;
