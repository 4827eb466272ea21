-- How many women and men of each ethnicity are there, and what is their mean systolic pressure?
SELECT ragged_filter(static_code, static_code ~ 'GENDER|ETHNICITY') AS who, count(*) AS patients,
       round(avg(ragged_mean(numeric_value) FILTER (WHERE code == 'LAB//8480-6//mm[Hg]')), 1)
           AS systolic
FROM meds('tests/data/synthea-meds') GROUP BY who ORDER BY who;
