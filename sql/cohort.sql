-- Selects a cohort by codes and a time window, with an index date per patient and the events of the year after it.
--   cargo run -- sql/cohort.sql
-- Files are written to out/; running the script again replaces them.

CREATE VIEW patients AS
SELECT subject_id, time, code, code_id, numeric_value
FROM meds('tests/data/synthea-meds');

-- Find codes of hypertension and diabetes. `FROM vocab('DIR')` is the table of all codes.
SELECT token, code FROM vocab('tests/data/synthea-meds') WHERE code LIKE 'CONDITION//59621000%' OR code LIKE '%4548-4%';

-- The cohort: hypertension coded at least once between 1980 and 2010. A comparison returns a mask of the shape of
-- `code`; `ragged_any(mask, -1)` has one value per event, like the comparisons of `time`, so AND can combine them.
CREATE VIEW cohort AS
SELECT *, ragged_at(ragged_filter(time, hit), 0) AS index_time
FROM (SELECT *,
             ragged_any(code == 'CONDITION//59621000', -1)
               AND time >= TIMESTAMP '1980-01-01' AND time < TIMESTAMP '2010-01-01' AS hit
      FROM patients)
WHERE ragged_any(hit);

SELECT subject_id, index_time, ragged_sum(hit) AS times_coded FROM cohort ORDER BY subject_id;

-- The number of patients at each step, in one pass.
SELECT count(*) AS patients,
       count(*) FILTER (WHERE ragged_any(code == 'CONDITION//59621000')) AS ever_coded,
       (SELECT count(*) FROM cohort) AS within_the_window
FROM patients;

-- The year from the index date on. The times of a patient ascend, so two binary searches find the range of events
-- of the window, and every column is sliced by this range.
CREATE VIEW year_after AS
SELECT subject_id, index_time,
       ragged_slice(time, a, b) AS time,
       ragged_slice(code, a, b) AS code,
       ragged_slice(code_id, a, b) AS code_id,
       ragged_slice(numeric_value, a, b) AS numeric_value
FROM (SELECT *,
             ragged_searchsorted(time, index_time) AS a,
             ragged_searchsorted(time, index_time + INTERVAL '1 year') AS b
      FROM cohort);

SELECT subject_id, index_time, ragged_lengths(time) AS events, ragged_count(code) AS measurements,
       ragged_count(ragged_filter(code, code LIKE 'DRUG//%')) AS drugs,
       round(ragged_mean(ragged_filter(numeric_value, code == 'LAB//8480-6//mm[Hg]')), 1) AS systolic
FROM year_after ORDER BY subject_id;

-- Write the cohort to a file that has only the events of that year.
COPY (SELECT * FROM year_after ORDER BY subject_id)
TO 'out/cohort.parquet' STORED AS PARQUET OPTIONS (overwrite true);

FROM ragged_axes('out/cohort.parquet');
