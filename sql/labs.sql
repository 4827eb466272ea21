-- Computes trajectories of labs: one row per patient, one element per day.
--   cargo run -- sql/labs.sql
-- Files are written to out/; running the script again replaces them.

-- Body weight, with one row per patient who has one. A filter keeps one list per event: events without a weight
-- become empty lists, and `ragged_flatten` returns the values in the order of their times.
CREATE VIEW weights AS
SELECT subject_id,
       ragged_filter(time, ragged_any(code == 'LAB//29463-7//kg', -1)) AS time,
       ragged_flatten(ragged_filter(numeric_value, code == 'LAB//29463-7//kg')) AS kg
FROM meds('tests/data/synthea-meds')
WHERE ragged_any(code == 'LAB//29463-7//kg');

-- Statistics of the trajectory of each patient, which are computed within the row.
SELECT subject_id, ragged_count(kg) AS measured,
       ragged_at(kg, 0) AS first_kg, ragged_at(kg, -1) AS last_kg,
       ragged_min(kg) AS lowest, ragged_max(kg) AS highest,
       round(ragged_at(kg, -1) - ragged_at(kg, 0), 1) AS change
FROM weights ORDER BY abs(ragged_at(kg, -1) - ragged_at(kg, 0)) DESC LIMIT 5;

-- By day: `ragged_explode` returns a long table, which GROUP BY groups like any table. Each lab has its own column.
CREATE VIEW daily AS
SELECT subject_id, CAST(time AS DATE) AS day,
       round(avg(numeric_value) FILTER (WHERE code = 'LAB//29463-7//kg'), 1) AS kg,
       round(avg(numeric_value) FILTER (WHERE code = 'LAB//39156-5//kg/m2'), 1) AS bmi,
       round(avg(numeric_value) FILTER (WHERE code = 'LAB//8480-6//mm[Hg]'), 1) AS systolic
FROM ragged_explode('SELECT subject_id, time, code, numeric_value FROM meds(''tests/data/synthea-meds'')')
WHERE numeric_value IS NOT NULL
GROUP BY subject_id, CAST(time AS DATE);

-- One row per patient again: lists of days and of the three labs, which are NULL on days without this lab.
CREATE VIEW trajectories AS
FROM ragged_nest('SELECT * FROM daily WHERE kg IS NOT NULL OR bmi IS NOT NULL OR systolic IS NOT NULL
                  ORDER BY subject_id, day', 'subject_id');

SELECT subject_id, ragged_lengths(day) AS days, ragged_tail(day, 3) AS last_days, ragged_tail(kg, 3) AS kg,
       ragged_tail(systolic, 3) AS systolic
FROM trajectories ORDER BY subject_id LIMIT 5;

-- The quartile of each value: `ragged_bin` looks up the cuts of the lab for each value.
CREATE VIEW quartiles AS
SELECT code, [q25, q50, q75] AS cuts
FROM (SELECT code,
             approx_percentile_cont(0.25) WITHIN GROUP (ORDER BY numeric_value) AS q25,
             approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY numeric_value) AS q50,
             approx_percentile_cont(0.75) WITHIN GROUP (ORDER BY numeric_value) AS q75
      FROM ragged_explode('SELECT code, numeric_value FROM meds(''tests/data/synthea-meds'')')
      WHERE numeric_value IS NOT NULL GROUP BY code);

SELECT subject_id, ragged_tail(kg, 4) AS kg, ragged_tail(bin, 4) AS quartile
FROM (SELECT subject_id, kg, ragged_bin(kg, 'LAB//29463-7//kg', 'quartiles') AS bin FROM weights)
ORDER BY subject_id LIMIT 5;

COPY (SELECT * FROM trajectories ORDER BY subject_id)
TO 'out/trajectories.parquet' STORED AS PARQUET OPTIONS (overwrite true);
