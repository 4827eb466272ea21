-- Which three diagnoses are the most frequent in each decade of life?
SELECT decade * 10 AS age_from,
       ragged_unzip(ragged_histogram_agg(diagnosis, 3), 'value') AS diagnoses,
       ragged_unzip(ragged_histogram_agg(diagnosis, 3), 'count') AS times
FROM (SELECT unnest(ragged_group_keys(decade)) AS decade,
             unnest(ragged_group(diagnosis, decade)) AS diagnosis
      FROM (SELECT split_part(ragged_filter(code, code LIKE 'CONDITION//%'), '//', 2) AS diagnosis,
                   (date_diff('day', ragged_first(time), time) / 3652.5)::BIGINT[] AS decade
            FROM meds('tests/data/synthea-meds')))
GROUP BY decade
ORDER BY decade;
