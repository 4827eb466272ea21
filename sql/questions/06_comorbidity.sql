-- Which pairs of diagnoses do most patients share?
SELECT x, y, count(*) AS patients
FROM (SELECT ragged_unique(ragged_compress(code, code LIKE 'CONDITION%')) AS diagnoses
      FROM meds('tests/data/synthea-meds')), unnest(diagnoses) AS a(x), unnest(diagnoses) AS b(y)
WHERE x < y GROUP BY ALL ORDER BY patients DESC, x, y LIMIT 5;
