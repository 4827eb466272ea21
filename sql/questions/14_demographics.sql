-- How many women and men of each ethnicity are there, and what is their mean systolic pressure?
SELECT ragged_first(static_code) FILTER (WHERE static_code LIKE 'GENDER//%') AS sex,
       ragged_first(static_code) FILTER (WHERE static_code LIKE 'ETHNICITY//%') AS ethnicity,
       count(*) AS patients,
       round(avg(ragged_mean(numeric_value) FILTER (WHERE code == 'LAB//8480-6//mm[Hg]')), 1)
           AS systolic
FROM meds('tests/data/synthea-meds')
GROUP BY sex, ethnicity
ORDER BY sex, ethnicity;
