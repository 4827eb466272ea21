-- Which three diagnoses are the most frequent in each decade of life?
SELECT floor(days / 3652.5)::INT * 10 AS age_from,
       ragged_unzip(ragged_histogram_agg(split_part(code, '//', 2), 3), 'value') AS diagnoses
FROM ragged_explode((SELECT code, date_diff('day', ragged_first(time), time) AS days
                     FROM meds('tests/data/synthea-meds')))
WHERE code LIKE 'CONDITION%' GROUP BY age_from ORDER BY age_from;
