-- How many days after the fortieth birthday is the first emergency, and who is censored without
-- one?
SELECT subject_id, date_diff('day', start, coalesce(emergency, until)) AS days,
       emergency IS NOT NULL AS event
FROM (SELECT subject_id, start, ragged_last(time) AS until,
             ragged_min(time) FILTER (WHERE time >= start
                                        AND ragged_any(code == 'VISIT_START//EMERGENCY', -1))
                 AS emergency
      FROM (SELECT *, ragged_first(time) + INTERVAL '40 years' AS start
            FROM meds('tests/data/synthea-meds')))
WHERE until >= start
ORDER BY days, subject_id
LIMIT 8;
