-- After a visit of one kind, of which kind is the next?
SELECT array_to_string(unnest(ragged_ngrams(
           ragged_compress(code, code LIKE 'VISIT_START%'), 2)), '>') AS pair, count(*) AS n
FROM meds('tests/data/synthea-meds') GROUP BY 1 ORDER BY 1;
