-- Writes padded training batches, separately for each split.
--   cargo run -- sql/batches.sql
-- Files are written to out/; running the script again replaces them.

-- The data set has a file with the split of each patient.
CREATE VIEW splits AS FROM read_parquet('tests/data/synthea-meds/metadata/subject_splits.parquet');

SELECT split, count(*) AS patients FROM splits GROUP BY split ORDER BY split;

-- One row per label, with the tokens and numbers of the last 64 events up to its prediction time.
CREATE VIEW items AS
SELECT l.subject_id, l.prediction_time, l.boolean_value, ragged_lookup(l.subject_id, 'splits', 'subject_id', 'split') AS split,
       ragged_tail(time_delta_days, 64) AS time_delta_days,
       ragged_tail(code_id, 64) AS code,
       ragged_tail(numeric_value, 64) AS numeric_value
FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels') l
WHERE ragged_lengths(code_id) > 0;

SELECT split, count(*) AS items, ragged_max_shape_agg(code) AS longest FROM items GROUP BY split ORDER BY split;

-- Training batches are shuffled, and the two epochs have different orders. Every batch is a safetensors file with one
-- tensor per column, padded to its longest item, and masks; `batches.json` lists the files.
COPY (SELECT boolean_value, time_delta_days, code, numeric_value FROM items WHERE split = 'train')
TO 'out/train/' STORED AS BATCHES (batch 64, len 64, inner 16, shuffle true, seed 7, epochs 2, overwrite true);

-- Held-out batches are in order, and have the subject and the time, so that predictions can be joined with labels.
COPY (SELECT subject_id, prediction_time, boolean_value, time_delta_days, code, numeric_value FROM items WHERE split = 'held_out')
TO 'out/held_out/' STORED AS BATCHES (batch 64, len 64, inner 16, overwrite true);

-- A batch can also be built in a query: `densify` returns tensors of a literal shape.
COPY (SELECT densify(code, [16, 8]) AS code, densify_mask(code, [16, 8]) AS code_mask, boolean_value
      FROM items WHERE split = 'tuning' LIMIT 32)
TO 'out/tuning.safetensors' STORED AS SAFETENSORS OPTIONS (overwrite true);
