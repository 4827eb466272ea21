-- How many drugs precede each positive label: in 30 days, and in all?
SELECT subject_id, prediction_time, COLUMNS('count')
FROM meds_features('tests/data/synthea-meds', 'tests/data/synthea-meds/labels',
                   prefixes => ['DRUG//'], windows => ['30d', 'all'], aggregates => ['count'])
WHERE boolean_value ORDER BY 3 DESC, 1, 2 LIMIT 5;
