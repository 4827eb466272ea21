-- How many patients, events and emergencies does each split have?
SELECT split, count(*) AS patients, sum(ragged_lengths(time)) AS events,
       sum(ragged_sum(code == 'VISIT_START//EMERGENCY')) AS emergencies
FROM meds('tests/data/synthea-meds')
NATURAL JOIN 'tests/data/synthea-meds/metadata/subject_splits.parquet'
GROUP BY split ORDER BY split;
