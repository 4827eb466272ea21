-- After which discharges was a patient admitted again within 90 days?
SELECT subject_id, discharge::DATE[] AS discharge,
       ragged_window(admission, admission, discharge, 'count', after => INTERVAL '90 days') > 0
           AS readmitted
FROM (SELECT subject_id,
             ragged_filter(time, ragged_any(code == 'VISIT_START//INPATIENT', -1)) AS admission,
             ragged_filter(time, ragged_any(code == 'VISIT_END//INPATIENT', -1)) AS discharge
      FROM meds('tests/data/synthea-meds'))
WHERE ragged_lengths(discharge) > 0
ORDER BY subject_id
LIMIT 10;
