-- How many visits does each patient have in a calendar year, in the last four?
SELECT subject_id, ragged_group_keys(year(time))[-4:] AS years, ragged_sum(ragged_group(
           ragged_sum(code LIKE 'VISIT_START%', -1), year(time)), -1)[-4:] AS visits
FROM meds('tests/data/synthea-meds') ORDER BY 1 LIMIT 5;
