-- Which body mass index was known at each positive label, and how many days old was it?
SELECT subject_id, prediction_time, ragged_asof(bmi, time, prediction_time) AS bmi,
       date_diff('day', ragged_asof(time, time, prediction_time), prediction_time) AS days_old
FROM (SELECT subject_id, prediction_time, ragged_compress(numeric_value, hit) AS bmi,
             ragged_compress(ragged_broadcast(time, hit), hit) AS time
      FROM (SELECT *, code == 'LAB//39156-5//kg/m2' AS hit
            FROM meds_asof('tests/data/synthea-meds', 'tests/data/synthea-meds/labels')
            WHERE boolean_value))
WHERE ragged_lengths(bmi) > 0
ORDER BY days_old DESC, subject_id, prediction_time
LIMIT 5;
