-- Which patients with stress on record had a diastolic pressure above 80 in the 30 days before an
-- emergency, and when were these emergencies?
SELECT subject_id, ragged_filter(time, ragged_any(code == 'VISIT_START//EMERGENCY', -1)
           AND ragged_window(code == 'LAB//8462-4//mm[Hg]' AND numeric_value > 80,
                             time, time, 'any', INTERVAL '30 days'))::DATE[] AS emergencies
FROM meds('tests/data/synthea-meds')
WHERE ragged_any(code == 'CONDITION//73595000') AND len(emergencies) > 0 ORDER BY 1;
