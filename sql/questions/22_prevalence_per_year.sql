-- Which share of the patients seen in a year is diagnosed with sinusitis in that year?
SELECT year(time) AS year, count(DISTINCT subject_id) AS seen,
       count(DISTINCT subject_id) FILTER (WHERE code = 'CONDITION//444814009') AS sick,
       round(100.0 * sick / seen, 1) AS percent
FROM ragged_explode((FROM meds('tests/data/synthea-meds')))
GROUP BY year ORDER BY year DESC LIMIT 5;
