-- Computes features of every label from the events up to its prediction time.
--   cargo run -- sql/asof.sql
-- Files are written to out/; running the script again replaces them.

-- One row per label. The lists have the events up to and including `prediction_time`.
CREATE VIEW known AS
SELECT * FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels');

-- The last 90 days before the prediction are a slice of the lists: from the first event of the window to
-- the last event.
CREATE VIEW recent AS
SELECT *,
       ragged_slice(code, a, NULL) AS recent_code,
       ragged_slice(numeric_value, a, NULL) AS recent_value
FROM (SELECT *, ragged_searchsorted(time, prediction_time - INTERVAL '90 days') AS a FROM known);

-- Features: whether a code is in the window, counts in the window and in the whole record, and the last value of a
-- measurement at any time, with its time.
CREATE VIEW features AS
SELECT subject_id, prediction_time, boolean_value,
       ragged_lengths(time) AS events,
       ragged_count(recent_code) AS measurements_90d,
       coalesce(ragged_any(recent_code LIKE 'VISIT_START//EM%'), false) AS emergency_90d,
       ragged_count(ragged_filter(recent_code, recent_code LIKE 'DRUG//%')) AS drugs_90d,
       ragged_count(ragged_filter(code, code LIKE 'CONDITION//%')) AS conditions_ever,
       ragged_max(ragged_filter(recent_value, recent_code == 'LAB//8480-6//mm[Hg]')) AS highest_systolic_90d,
       ragged_at(ragged_flatten(ragged_filter(numeric_value, code == 'LAB//39156-5//kg/m2')), -1) AS last_bmi,
       ragged_at(ragged_filter(time, ragged_any(code == 'LAB//39156-5//kg/m2', -1)), -1) AS last_bmi_time
FROM recent;

SELECT count(*) AS labels,
       count(*) FILTER (WHERE boolean_value) AS positive,
       round(avg(events), 1) AS mean_events,
       count(last_bmi) AS with_bmi
FROM features;

-- The share of positive labels by a feature of the window.
SELECT emergency_90d, count(*) AS labels, round(avg(CASE WHEN boolean_value THEN 1.0 ELSE 0.0 END), 3) AS rate
FROM features GROUP BY emergency_90d ORDER BY emergency_90d;

SELECT subject_id, prediction_time, measurements_90d, drugs_90d, conditions_ever, last_bmi,
       date_part('day', prediction_time - last_bmi_time) AS bmi_age_days
FROM features WHERE last_bmi IS NOT NULL LIMIT 5;

-- Write a table for other tools: one row per label, in the order of the labels.
COPY (SELECT * FROM features)
TO 'out/features.parquet' STORED AS PARQUET OPTIONS (overwrite true);

SUMMARIZE 'out/features.parquet';
