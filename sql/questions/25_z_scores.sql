-- Which value of each patient is furthest from the mean of all patients, in standard deviations?
WITH norms AS (
    SELECT code, avg(numeric_value) AS mean, stddev(numeric_value) AS sd
    FROM ragged_explode((SELECT code, numeric_value FROM meds('tests/data/synthea-meds')))
    GROUP BY code HAVING count(numeric_value) >= 100)
SELECT subject_id, ragged_at(code, most) AS code, round(ragged_at(z, most), 2) AS z
FROM (SELECT subject_id, code, z, ragged_argmax(abs(z)) AS most
      FROM (SELECT subject_id, ragged_flatten(code) AS code,
                   ragged_flatten((numeric_value - ragged_lookup(code, 'norms', 'code', 'mean'))
                                  / ragged_lookup(code, 'norms', 'code', 'sd')) AS z
            FROM meds('tests/data/synthea-meds')))
ORDER BY abs(z) DESC, subject_id
LIMIT 5;
