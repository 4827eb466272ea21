-- Which rows does a colleague get who works with flat tables? `-o rows.csv` writes them to a
-- file.
SELECT subject_id, time, code, numeric_value
FROM ragged_explode((SELECT subject_id, time, code, numeric_value
                     FROM meds('tests/data/synthea-meds')))
WHERE numeric_value IS NOT NULL
ORDER BY subject_id, time, code, numeric_value
LIMIT 5;
