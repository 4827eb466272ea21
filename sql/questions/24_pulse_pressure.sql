-- What was the pulse pressure (systolic minus diastolic) at the last three measurements of each
-- patient?
SELECT subject_id, ragged_filter(time, pulse > 0)[-3:]::DATE[] AS days,
       ragged_filter(pulse, pulse > 0)[-3:] AS pulse
FROM (SELECT *, ragged_first(numeric_value, -1) FILTER (WHERE code == 'LAB//8480-6//mm[Hg]')
                - ragged_first(numeric_value, -1) FILTER (WHERE code == 'LAB//8462-4//mm[Hg]')
                AS pulse
      FROM meds('tests/data/synthea-meds'))
ORDER BY 1 LIMIT 5;
