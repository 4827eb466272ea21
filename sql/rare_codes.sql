-- Removes rare codes from nested lists, in two ways.
--   cargo run -- sql/rare_codes.sql
-- Files are written to out/; running the script again replaces them.

CREATE VIEW patients AS
SELECT subject_id, time, code, numeric_value FROM meds('tests/data/synthea-meds');

-- How often each code is recorded, and for how many patients. The long table has one row per measurement, and
-- repeats the columns of the patient and of the event.
CREATE TABLE counts AS
SELECT code, count(*) AS occurrences, count(DISTINCT subject_id) AS subjects
FROM ragged_explode('SELECT subject_id, code FROM patients')
GROUP BY code;

SELECT count(*) AS codes, count(*) FILTER (WHERE subjects < 3) AS rare FROM counts;

-- 1. In the lists. A look-up finds how many patients have the code of each measurement, and the same mask filters
--    codes and values, so their lists keep equal lengths. Events without remaining measurements are removed, too.
CREATE VIEW kept AS
SELECT subject_id,
       ragged_filter(time, some) AS time,
       ragged_filter(code, some) AS code,
       ragged_filter(numeric_value, some) AS numeric_value
FROM (SELECT subject_id, time, code, numeric_value, ragged_lengths(code, 2) > 0 AS some
      FROM (SELECT subject_id, time,
                   ragged_filter(code, common) AS code, ragged_filter(numeric_value, common) AS numeric_value
            FROM (SELECT *, ragged_lookup(code, 'counts', 'code', 'subjects') >= 3 AS common FROM patients)));

SELECT sum(ragged_count(p.code)) AS before, sum(ragged_count(k.code)) AS after,
       sum(ragged_lengths(p.time)) AS events_before, sum(ragged_lengths(k.time)) AS events_after
FROM patients p JOIN kept k ON p.subject_id = k.subject_id;

-- 2. In a long table. WHERE selects its rows, and `ragged_nest` collects them by patient and time. Any SQL is
--    possible between `ragged_explode` and `ragged_nest`.
CREATE VIEW renested AS
FROM ragged_nest('SELECT e.* FROM ragged_explode(''patients'') e
                  WHERE code IN (SELECT code FROM counts WHERE subjects >= 3)',
                 'subject_id', 'time');

-- Both ways give the same numbers.
SELECT count(*) AS patients, sum(ragged_count(code)) AS measurements, sum(ragged_lengths(time)) AS events FROM kept
UNION ALL
SELECT count(*), sum(ragged_count(code)), sum(ragged_lengths(time)) FROM renested;

COPY (SELECT * FROM kept ORDER BY subject_id)
TO 'out/common_codes.parquet' STORED AS PARQUET OPTIONS (overwrite true);
