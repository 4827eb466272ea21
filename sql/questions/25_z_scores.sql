-- Which value of each patient is furthest from the mean of all patients, in standard deviations?
SELECT DISTINCT ON (subject_id) subject_id, code, round(score, 2) AS z
FROM (SELECT *, count(numeric_value) OVER w AS n,
             (numeric_value - avg(numeric_value) OVER w) / stddev(numeric_value) OVER w AS score
      FROM ragged_explode((FROM meds('tests/data/synthea-meds'))) WINDOW w AS (PARTITION BY code))
WHERE n >= 100 ORDER BY abs(score) DESC, subject_id LIMIT 5;
