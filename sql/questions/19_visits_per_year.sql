-- How many visits does each patient have in a calendar year?
SELECT subject_id, ragged_tail(ragged_group_keys(year), 4) AS years,
       ragged_tail(ragged_sum(ragged_group(visits, year), -1), 4) AS visits
FROM (SELECT subject_id, year(time) AS year, ragged_sum(code LIKE 'VISIT_START//%', -1) AS visits
      FROM meds('tests/data/synthea-meds'))
ORDER BY subject_id
LIMIT 5;
