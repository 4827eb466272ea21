-- Writes sparse tensors and dictionaries to files, and looks up their values: which codes occur together.
--   cargo run -- sql/dok.sql
-- Files are written to out/; running the script again replaces them.

-- One row per patient; `codes` has the distinct codes of the patient as integers.
CREATE VIEW patients AS
SELECT subject_id, array_distinct(ragged_flatten(code_id)) AS codes
FROM meds('tests/data/synthea-meds');

CREATE VIEW had AS
SELECT subject_id, unnest(codes) AS code FROM patients;

-- 1. A matrix of pairs: in how many patients do codes i and j occur together? It has 428 x 428 elements, but
--    only the nonzero elements take memory.
COPY (
    SELECT a.code AS i, b.code AS j, count(*) AS patients
    FROM had a JOIN had b ON a.subject_id = b.subject_id
    GROUP BY a.code, b.code
) TO 'out/together.safetensors' STORED AS DOK OPTIONS (shape '428, 428', overwrite true);

CREATE EXTERNAL TABLE together STORED AS DOK LOCATION 'out/together.safetensors';

SELECT count(*) AS pairs, max(patients) AS most FROM together;

-- Conditions on all axes become look-ups in a hash table, other conditions a scan; EXPLAIN shows which.
EXPLAIN SELECT * FROM together WHERE i = 5 AND j IN (6, 7, 8, 9);

-- 2. `dok_get` looks up values per row, also for lists of indices, without a join.
SELECT subject_id,
       dok_get('together', codes, codes) AS patients_with_each,
       ragged_max(dok_get('together', 5, codes)) AS with_code_5
FROM patients
ORDER BY subject_id
LIMIT 3;

-- 3. A statement replaces the whole file atomically, or leaves it unchanged if it fails.
DELETE FROM together WHERE i = j;
UPDATE together SET patients = 0 WHERE patients < 3;
SELECT count(*) AS pairs, min(patients) AS least FROM together;

-- 4. A dictionary with keys of any type: the mean of each code of each patient.
COPY (
    SELECT subject_id, code, avg(numeric_value) AS mean
    FROM (SELECT subject_id, unnest(ragged_flatten(code)) AS code,
                 unnest(ragged_flatten(numeric_value)) AS numeric_value
          FROM meds('tests/data/synthea-meds'))
    WHERE numeric_value IS NOT NULL
    GROUP BY subject_id, code
) TO 'out/means.safetensors' STORED AS DOK OPTIONS (keys 'subject_id, code', overwrite true);

CREATE EXTERNAL TABLE means STORED AS DOK LOCATION 'out/means.safetensors';

SELECT subject_id,
       dok_get('means', subject_id, 'LAB//39156-5//kg/m2') AS bmi,
       dok_contains('means', subject_id, 'LAB//8302-2//cm') AS has_height
FROM patients
ORDER BY subject_id
LIMIT 5;
