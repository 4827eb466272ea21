-- Which diagnosis follows which most often?
SELECT pair[1] AS diagnosis, pair[2] AS next, count(*) AS times
FROM (SELECT unnest(ragged_ngrams(ragged_compress(code, code LIKE 'CONDITION//%'), 2)) AS pair
      FROM meds('tests/data/synthea-meds'))
GROUP BY diagnosis, next
ORDER BY times DESC, diagnosis, next
LIMIT 5;
