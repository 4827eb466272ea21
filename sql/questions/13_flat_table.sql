-- Which rows does a colleague get who works with flat tables? `-o rows.csv` writes them to a
-- file.
SELECT subject_id, time, code, numeric_value
FROM ragged_explode((FROM meds('tests/data/synthea-meds')))
WHERE numeric_value IS NOT NULL ORDER BY ALL LIMIT 5;
