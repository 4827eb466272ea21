-- Which of the five most frequent diagnoses does each patient have, as a multi-hot list?
SELECT subject_id, ragged_isin((SELECT ragged_unzip(ragged_histogram_agg(ragged_filter(
           code, code LIKE 'CONDITION%'), 5), 'value') FROM meds('tests/data/synthea-meds')),
           ragged_flatten(code)) AS diagnoses
FROM meds('tests/data/synthea-meds') ORDER BY 1 LIMIT 5;
