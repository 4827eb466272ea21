-- Which diagnosis follows which most often?
SELECT unnest(ragged_ngrams(ragged_compress(code, code LIKE 'CONDITION%'), 2)) AS pair, count(*)
FROM meds('tests/data/synthea-meds') GROUP BY pair ORDER BY 2 DESC, pair LIMIT 5;
