-- In whom does creatinine rise fastest, in mg/dL per year, over at least five measurements?
SELECT subject_id, ragged_count(mg) AS measured,
       round(ragged_regr_slope(mg, epoch(time) / 31557600), 4) AS per_year
FROM (SELECT *, ragged_filter(numeric_value, code == 'LAB//38483-4//mg/dL') AS mg
      FROM meds('tests/data/synthea-meds'))
WHERE measured >= 5 ORDER BY per_year DESC, subject_id LIMIT 5;
