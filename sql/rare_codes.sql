-- Rare codes out, and the rest nested again.
--   cargo run -- sql/rare_codes.sql
-- Files are written to out/; running the script again replaces them.

CREATE VIEW patients AS
SELECT subject_id, time, code, numeric_value FROM meds('tests/data/synthea-meds');

-- How often each code is recorded, and for how many patients. The long table has one row per measurement, and
-- the columns of patient and event repeated.
CREATE TABLE counts AS
SELECT code, count(*) AS occurrences, count(DISTINCT subject_id) AS subjects
FROM ragged_explode('SELECT subject_id, code FROM patients')
GROUP BY code;

SELECT count(*) AS codes, count(*) FILTER (WHERE subjects < 3) AS rare FROM counts;

-- 1. In place. Every measurement looks up how many patients have its code, and the mask filters code and value
--    alike: their lists stay the same. Events that have nothing left go as well.
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

-- 2. By way of the long table: a plain WHERE, and `ragged_nest` puts rows together again by patient and time. Any
--    SQL may stand between the two.
CREATE VIEW renested AS
FROM ragged_nest('SELECT e.* FROM ragged_explode(''patients'') e
                  WHERE code IN (SELECT code FROM counts WHERE subjects >= 3)',
                 'subject_id', 'time');

-- Both ways agree.
SELECT count(*) AS patients, sum(ragged_count(code)) AS measurements, sum(ragged_lengths(time)) AS events FROM kept
UNION ALL
SELECT count(*), sum(ragged_count(code)), sum(ragged_lengths(time)) FROM renested;

COPY (SELECT * FROM kept ORDER BY subject_id)
TO 'out/common_codes.parquet' STORED AS PARQUET OPTIONS (overwrite true);
