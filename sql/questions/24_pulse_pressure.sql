-- What was the pulse pressure (systolic minus diastolic) at the last three measurements of each
-- patient?
SELECT subject_id, ragged_tail(ragged_filter(time, taken), 3)::DATE[] AS days,
       ragged_tail(ragged_filter(systolic - diastolic, taken), 3) AS pulse
FROM (SELECT subject_id, time, ragged_any(code == 'LAB//8480-6//mm[Hg]', -1) AS taken,
             ragged_first(numeric_value, -1) FILTER (WHERE code == 'LAB//8480-6//mm[Hg]')
                 AS systolic,
             ragged_first(numeric_value, -1) FILTER (WHERE code == 'LAB//8462-4//mm[Hg]')
                 AS diastolic
      FROM meds('tests/data/synthea-meds'))
ORDER BY subject_id
LIMIT 5;
