-- Reads a MEDS data set, answers questions, and writes a training batch and files.
--   cargo run -- sql/quickstart.sql
-- Files are written to out/; running the script again replaces them.

-- One row per patient. `time` is a list with the time of each event; `code` and `numeric_value` are lists of lists
-- with the measurements of each event. `code_id` has the codes as integers.
CREATE VIEW patients AS
SELECT subject_id, time, time_delta_days, code, code_id, numeric_value
FROM meds('tests/data/synthea-meds');

-- The size of the data, and the shape of the padded tensors.
SELECT count(*) AS patients,
       sum(ragged_lengths(time)) AS events,
       sum(ragged_count(code)) AS measurements,
       ragged_max_shape_agg(code) AS longest
FROM patients;

-- The first three patients.
FROM patients LIMIT 3;

-- 1. Which patients have ever had hypertension coded, and when first?
--    `code = '..'` compares every measurement at once; `ragged_any` reduces along an axis.
SELECT subject_id,
       ragged_sum(ragged_any(code == 'CONDITION//59621000', -1), 1) AS times_coded,
       ragged_at(ragged_filter(time, ragged_any(code == 'CONDITION//59621000', -1)), 0) AS first_time
FROM patients
WHERE ragged_any(code == 'CONDITION//59621000')
ORDER BY subject_id;

-- 2. The mean body mass index of each patient, and how often it was measured.
SELECT subject_id,
       round(ragged_mean(ragged_filter(numeric_value, code == 'LAB//39156-5//kg/m2')), 2) AS mean_bmi,
       ragged_count(ragged_filter(numeric_value, code == 'LAB//39156-5//kg/m2')) AS measured
FROM patients
WHERE ragged_any(code == 'LAB//39156-5//kg/m2')
ORDER BY mean_bmi DESC
LIMIT 5;

-- 3. The last ten events before 2015, for a model that must not see later events.
CREATE VIEW before_2015 AS
SELECT subject_id,
       ragged_tail(ragged_head(time, n), 10) AS time,
       ragged_tail(ragged_head(time_delta_days, n), 10) AS time_delta_days,
       ragged_tail(ragged_head(code, n), 10) AS code,
       ragged_tail(ragged_head(code_id, n), 10) AS code_id,
       ragged_tail(ragged_head(numeric_value, n), 10) AS numeric_value
FROM (SELECT *, ragged_searchsorted(time, TIMESTAMP '2015-01-01') AS n FROM patients);

SELECT subject_id, time, ragged_lengths(code, 2) AS codes_per_event, code
FROM before_2015
WHERE ragged_lengths(time) > 0
LIMIT 3;

-- Write a training batch: padded tensors [patients, events, measurements] and their masks.
COPY (SELECT time_delta_days, code_id, numeric_value FROM before_2015)
TO 'out/batch.safetensors' STORED AS SAFETENSORS OPTIONS (overwrite true);

-- Write the whole table for other tools: Parquet with list columns, and `.nrt` for nested_ragged_tensors.
COPY (SELECT * FROM patients) TO 'out/patients.parquet' STORED AS PARQUET OPTIONS (overwrite true);

COPY (SELECT subject_id, time_delta_days, code_id AS code, numeric_value FROM patients)
TO 'out/patients.nrt' STORED AS NRT OPTIONS (overwrite true);

-- Read the written files as a table.
SELECT count(*) AS patients, sum(ragged_count(code)) AS measurements FROM 'out/patients.nrt';
