-- After a visit of one kind, of which kind is the next?
SELECT pair[1] AS visit, pair[2] AS next, count(*) AS times
FROM (SELECT unnest(ragged_ngrams(visit, 2)) AS pair
      FROM (SELECT split_part(ragged_compress(code, code LIKE 'VISIT_START//%'), '//', 2) AS visit
            FROM meds('tests/data/synthea-meds')))
GROUP BY visit, next
ORDER BY visit, next;
