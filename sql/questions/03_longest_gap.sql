-- What is the longest time that each patient stayed away from care, and between which dates?
SELECT subject_id, ragged_at(time, gap - 1) AS last_seen, ragged_at(time, gap) AS seen_again,
       date_diff('day', ragged_at(time, gap - 1), ragged_at(time, gap)) AS days
FROM (SELECT subject_id, time, ragged_argmax(ragged_diff(time)) AS gap
      FROM (SELECT subject_id,
                   ragged_filter(time, ragged_any(code LIKE 'VISIT_START//%', -1)) AS time
            FROM meds('tests/data/synthea-meds')))
ORDER BY days DESC, subject_id
LIMIT 5;
