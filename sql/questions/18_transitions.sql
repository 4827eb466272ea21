-- After a visit of one kind, of which kind is the next?
SELECT unnest(ragged_ngrams(ragged_compress(code, code LIKE 'VISIT_START%'), 2)) AS pair, count(*) FROM meds('tests/data/synthea-meds') GROUP BY 1 ORDER BY 1;
