-- After which of the last three discharges of a patient was the patient admitted again within 90
-- days?
SELECT subject_id,
       ragged_filter(time, ragged_any(code == 'VISIT_END//INPATIENT', -1))[-3:]::DATE[]
           AS discharge,
       ragged_window(code == 'VISIT_START//INPATIENT', time, discharge, 'any',
                     after => INTERVAL '90 days') AS readmitted
FROM meds('tests/data/synthea-meds') WHERE len(discharge) > 0 ORDER BY 1;
