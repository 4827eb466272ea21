-- What is the longest time that each patient stayed away from care, and between which dates?
SELECT subject_id, ragged_max(ragged_diff(visit)) AS gap,
       visit[ragged_argmax(ragged_diff(visit)):][:2]::DATE[] AS dates
FROM (SELECT subject_id, ragged_filter(time, ragged_any(code LIKE 'VISIT_START%', -1)) AS visit
      FROM meds('tests/data/synthea-meds'))
ORDER BY gap DESC, subject_id LIMIT 5;
