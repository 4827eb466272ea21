-- Which share of the patients seen in a year is diagnosed with sinusitis in that year?
SELECT year, count(*) AS seen, count_if(sick) AS sick,
       round(100.0 * count_if(sick) / count(*), 1) AS percent
FROM (SELECT unnest(ragged_group_keys(year)) AS year,
             unnest(ragged_any(ragged_group(sick, year), -1)) AS sick
      FROM (SELECT year(time) AS year, ragged_any(code == 'CONDITION//444814009', -1) AS sick
            FROM meds('tests/data/synthea-meds')))
GROUP BY year
ORDER BY year DESC
LIMIT 5;
