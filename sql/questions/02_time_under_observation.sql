-- How long does the record of each patient reach, from the first visit to the last event?
SELECT subject_id, first_visit, last_event, date_diff('day', first_visit, last_event) AS days
FROM (SELECT subject_id, ragged_last(time) AS last_event,
             ragged_min(time) FILTER (WHERE ragged_any(code LIKE 'VISIT_START//%', -1))
                 AS first_visit
      FROM meds('tests/data/synthea-meds'))
ORDER BY days DESC, subject_id
LIMIT 5;
