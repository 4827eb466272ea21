-- How many drugs, laboratory values and diagnoses precede each positive label: in 30 days, in a
-- year, in all?
SELECT subject_id, prediction_time,
       "DRUG//*/30d/count" AS drugs_30d, "DRUG//*/365d/count" AS drugs_365d,
       "LAB//*/30d/count" AS labs_30d, "LAB//*/365d/count" AS labs_365d,
       "CONDITION//*/all/count" AS conditions
FROM meds_features('tests/data/synthea-meds', 'tests/data/synthea-meds/labels',
                   prefixes => ['DRUG//', 'LAB//', 'CONDITION//'], aggregates => ['count'])
WHERE boolean_value
ORDER BY drugs_365d DESC, subject_id, prediction_time
LIMIT 5;
