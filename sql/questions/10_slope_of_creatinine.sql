-- In whom does creatinine rise fastest, in mg/dL per year, over at least five measurements?
SELECT subject_id, ragged_count(creatinine) AS measured,
       round(ragged_regr_slope(creatinine, extract(epoch FROM time) / 86400 / 365.25), 4) AS per_year
FROM (SELECT subject_id, ragged_compress(numeric_value, hit) AS creatinine,
             ragged_compress(ragged_broadcast(time, hit), hit) AS time
      FROM (SELECT *, code == 'LAB//38483-4//mg/dL' AS hit FROM meds('tests/data/synthea-meds')))
WHERE ragged_count(creatinine) >= 5
ORDER BY per_year DESC, subject_id
LIMIT 5;
