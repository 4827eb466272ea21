-- Which patients with stress on record had a diastolic pressure above 80 in the 30 days before an
-- emergency, and when were these emergencies?
SELECT subject_id, ragged_filter(emergency, high)::DATE[] AS emergencies
FROM (SELECT subject_id, emergency,
             ragged_window(high, time, emergency, 'any', before => INTERVAL '30 days') AS high
      FROM (SELECT subject_id, time,
                   ragged_any(code == 'LAB//8462-4//mm[Hg]' AND numeric_value > 80, -1) AS high,
                   ragged_filter(time, ragged_any(code == 'VISIT_START//EMERGENCY', -1))
                       AS emergency
            FROM meds('tests/data/synthea-meds')
            WHERE ragged_any(code == 'CONDITION//73595000')))
WHERE ragged_any(high)
ORDER BY subject_id
LIMIT 5;
