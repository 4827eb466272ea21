-- Which drugs does a patient receive in the 90 days from the first systolic pressure of 140 or
-- more?
SELECT subject_id, ragged_min(time::DATE[]) FILTER (WHERE ragged_any(
           code == 'LAB//8480-6//mm[Hg]' AND numeric_value >= 140, -1)) AS first_high,
       ragged_unique(ragged_compress(code, code LIKE 'DRUG%' AND ragged_between(
           time, first_high, first_high + INTERVAL '90 days'))) AS drugs
FROM meds('tests/data/synthea-meds') WHERE first_high IS NOT NULL ORDER BY 1 LIMIT 5;
