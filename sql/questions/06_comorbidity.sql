-- Which pairs of diagnoses do most patients share?
WITH had AS (
    SELECT subject_id,
           unnest(ragged_unique(ragged_compress(code, code LIKE 'CONDITION//%'))) AS code
    FROM meds('tests/data/synthea-meds'))
SELECT a.code AS one, b.code AS other, count(*) AS patients
FROM had a JOIN had b ON a.subject_id = b.subject_id AND a.code < b.code
GROUP BY a.code, b.code
ORDER BY patients DESC, one, other
LIMIT 5;
