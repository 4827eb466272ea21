//! `meds_asof`: one row per label, with the events of its subject up to the prediction time.

use std::collections::HashMap;

use datafusion::arrow::array::{
    BooleanArray, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, TimestampMicrosecondType, UInt32Type};
use datafusion::parquet::arrow::ArrowWriter;
use serrate::io::meds::{AsOf, LabelKind, Labels, MedsDataset, MedsShard};

use super::*;

const MEDS: &str = "tests/data/synthea-meds";
const COHORT: &str = "tests/data/synthea-meds-torch-data";
const LABELS: &str = "tests/data/synthea-meds/labels";

fn read_as_of(data: &str, labels: &Path) -> String {
    format!("meds_asof('{data}', '{}')", display_path(labels))
}

/// Writes a file of boolean labels: subject id, prediction time in microseconds, value.
fn labels_file(path: &Path, rows: &[(i64, i64, bool)]) {
    let ids: Int64Array = rows.iter().map(|r| Some(r.0)).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|r| Some(r.1)).collect();
    let values: BooleanArray = rows.iter().map(|r| Some(r.2)).collect();
    let batch = RecordBatch::try_from_iter([
        ("subject_id", Arc::new(ids) as ArrayRef),
        ("prediction_time", Arc::new(times)),
        ("boolean_value", Arc::new(values)),
    ])
    .unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

async fn query_one_batch(ctx: &SessionContext, sql: &str) -> RecordBatch {
    let batches = run_query(ctx, sql).await;
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn read_shards(root: &str) -> Vec<MedsShard> {
    let data = MedsDataset::open(root).unwrap();
    data.shards().map(|s| s.read(&Default::default()).unwrap()).collect()
}

/// The token of a measurement, its code, and the bits of its numeric value.
type Measurement = (u32, String, Option<u32>);

/// The measurements of a subject by event time, and its static codes.
#[derive(Clone, Debug, Default, PartialEq)]
struct History {
    events: Vec<(i64, Vec<Measurement>)>,
    statics: Vec<String>,
}

/// Returns the whole history of each subject id, read from the shards without `meds_asof`.
fn read_histories() -> HashMap<i64, History> {
    let mut out = HashMap::new();
    for shard in read_shards(MEDS) {
        let batch = shard.to_batch().unwrap();
        let ids = batch["subject_id"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            out.insert(ids.value(row), read_history(&batch, row));
        }
    }
    out
}

fn list_texts(array: &ArrayRef) -> Vec<String> {
    let texts = cast(array, &DataType::Utf8).unwrap();
    texts.as_string::<i32>().iter().map(|t| t.unwrap().to_owned()).collect()
}

fn read_history(batch: &RecordBatch, row: usize) -> History {
    let list = |name: &str| batch[name].as_list::<i32>().value(row);
    let times = list("time");
    let (tokens, codes, numbers) = (list("code_id"), list("code"), list("numeric_value"));
    let events = times.as_primitive::<TimestampMicrosecondType>().values().iter().enumerate();
    let events = events.map(|(event, time)| {
        let of = |lists: &ArrayRef| lists.as_list::<i32>().value(event);
        let tokens = of(&tokens).as_primitive::<UInt32Type>().values().to_vec();
        let numbers = of(&numbers);
        let numbers = numbers.as_primitive::<datafusion::arrow::datatypes::Float32Type>();
        let numbers: Vec<Option<u32>> = numbers.iter().map(|v| v.map(f32::to_bits)).collect();
        let measurements = tokens.into_iter().zip(list_texts(&of(&codes))).zip(numbers);
        (*time, measurements.map(|((t, c), n)| (t, c, n)).collect())
    });
    History { events: events.collect(), statics: list_texts(&list("static_code")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_equal_a_join_of_labels_with_events() {
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 5000").await.unwrap();
    let labels = Labels::read(LABELS).unwrap();
    let all = read_histories();
    for data in [MEDS, COHORT] {
        let sql = format!("SELECT * FROM {}", read_as_of(data, Path::new(LABELS)));
        let parts = query_batches(&ctx, &sql).await.unwrap();
        assert!(parts.len() > 20, "{} batches", parts.len());
        let rows = concat_batches(&parts[0].schema(), &parts).unwrap();
        assert_eq!(rows.num_rows(), 1715);
        // The rows are in the order of the labels although four partitions read them.
        assert_eq!(rows["subject_id"].as_ref(), labels.subject_ids());
        assert_eq!(rows["prediction_time"].as_ref(), labels.prediction_times());
        assert_eq!(&rows["boolean_value"], labels.value(LabelKind::Boolean).unwrap());
        let mut events = 0;
        for row in 0..rows.num_rows() {
            let due = labels.prediction_times().value(row);
            let mut expected = all[&labels.subject_ids().value(row)].clone();
            expected.events.retain(|(time, _)| *time <= due);
            let mut found = read_history(&rows, row);
            if data == COHORT {
                // The tensorized cohort has normalized numbers, and omits codes outside its
                // vocabulary.
                let known = |(token, code, _): Measurement| (token, code, None);
                for (_, event) in expected.events.iter_mut().chain(&mut found.events) {
                    *event = event.drain(..).filter(|m| m.0 > 0).map(known).collect();
                }
                expected.events.retain(|(_, event)| !event.is_empty());
                found.events.retain(|(_, event)| !event.is_empty());
            }
            assert!(found.events.iter().all(|(time, _)| *time <= due));
            assert_eq!(found.events, expected.events, "row {row} of {data}");
            if data == MEDS {
                assert_eq!(found.statics, expected.statics);
            }
            events += found.events.len();
        }
        assert!(events > 10_000, "{events}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_event_is_after_the_prediction_time() {
    let ctx = create_parallel_session();
    for data in [MEDS, COHORT] {
        let from = read_as_of(data, Path::new(LABELS));
        for sql in [
            format!("SELECT count(*) FROM {from} WHERE ragged_max(time) > prediction_time"),
            format!(
                "SELECT count(*) FROM (SELECT prediction_time, unnest(time) AS t FROM {from}) WHERE t > prediction_time"
            ),
            format!("SELECT count(*) FROM {from} WHERE time[-1] > prediction_time"),
            format!(
                "SELECT count(*) FROM {from} WHERE ragged_at(ragged_tail(time, 3), -1) > prediction_time"
            ),
        ] {
            assert_eq!(query_int(&ctx, &sql).await, 0, "{sql}");
        }
        // Events at the prediction time itself are included.
        let last =
            format!("SELECT count(*) FROM {from} WHERE ragged_at(time, -1) = prediction_time");
        assert!(query_int(&ctx, &last).await > 100);
    }
}

#[test]
fn labels_of_one_subject_share_the_values_of_its_events() {
    let labels = Labels::read(LABELS).unwrap();
    let rows = AsOf::try_new(read_shards(MEDS), &labels).unwrap();
    assert_eq!((rows.len(), rows.unknown()), (1715, 0));
    let ids = rows.labels().subject_ids().values();
    let at = |label: usize, column: &str| {
        let table = rows.events(label).unwrap();
        let values = table.column(column).unwrap().values().to_data();
        (values.buffers()[0].as_ptr() as usize + values.offset() * 4, values.len())
    };
    let mut pairs = 0;
    for label in 1..rows.len() {
        if ids[label] != ids[label - 1] {
            continue;
        }
        for column in ["code_id", "numeric_value"] {
            let (a, b) = (at(label - 1, column), at(label, column));
            assert_eq!(a.0, b.0, "{column} of labels {} and {label}", label - 1);
            assert!(b.1 >= a.1);
        }
        let (a, b) = (rows.statics(label - 1).unwrap(), rows.statics(label).unwrap());
        let text = |t: &RaggedTable| {
            let data = t.column("static_code_id").unwrap().values().to_data();
            data.buffers()[0].as_ptr() as usize + data.offset() * 4
        };
        assert_eq!(text(&a), text(&b));
        pairs += 1;
    }
    assert!(pairs > 1000, "{pairs}");
    assert!(rows.events(1715).is_err());
    let last = rows.last("code_id", 3, 690..705).unwrap();
    let none = rows.last("static_code", 0, 5..7).unwrap();
    assert_eq!((none.lengths(1).unwrap(), last.len(), last.ndim()), (vec![0, 0], 15, 3));
    assert!(rows.last("code_id", 3, 1700..1716).is_err());
    assert!(rows.last("subject_id", 3, 0..1).is_err());
    for label in 690..705 {
        let whole = rows.events(label).unwrap().array("code_id").unwrap();
        let n = whole.axis_len(1).unwrap();
        let tail =
            serrate::kernels::index::tail(&whole, 1, &serrate::kernels::RowArg::All(Some(3)));
        assert_eq!(tail.unwrap(), last.slice(label - 690, 1).unwrap(), "{label} with {n} events");
    }
    for label in [0, 700, 1714] {
        let table = rows.events(label).unwrap();
        assert_eq!(table.axis_len(1).unwrap(), rows.num_events(label).unwrap());
    }
}

/// Rows refer to ranges of the history of a subject. Functions return the same for these ranges as
/// for copies of the lists in a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn functions_of_ranges_equal_functions_of_lists() {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    let from = read_as_of(MEDS, Path::new(LABELS));
    query_batches(&ctx, "SET serrate.leaf_batch_size = 20000").await.unwrap();
    query_batches(&ctx, &format!("CREATE TABLE t AS SELECT * FROM {from}")).await.unwrap();
    for e in [
        "ragged_tail(code_id, 3)",
        "ragged_tail(code_id, 0)",
        "ragged_tail(time, -2)",
        "ragged_tail(numeric_value, NULL)",
        "ragged_tail(code_id, 2, 2)",
        "ragged_tail(code_id, 2, 1)",
        "ragged_head(code, 2)",
        "ragged_head(time_delta_days, -4)",
        "ragged_slice(code_id, -5, -2)",
        "ragged_slice(code_id, 1, NULL, 1)",
        "ragged_slice(time, NULL, NULL, 2)",
        "ragged_flatten(code_id)",
        "ragged_tail(ragged_flatten(code), 10)",
        "ragged_flatten(ragged_head(ragged_tail(numeric_value, 4), 2))",
        "ragged_tail(static_code, 1)",
        "ragged_lengths(code_id)",
        "ragged_lengths(code_id, 1)",
        "ragged_lengths(code_id, 2)",
        "ragged_lengths(ragged_flatten(ragged_tail(code, 3)))",
        "ragged_count(numeric_value)",
        "ragged_count(ragged_tail(numeric_value, 2))",
        "ragged_count(static_numeric_value)",
        "ragged_at(time, -1)",
        "ragged_at(time, 2)",
        "ragged_at(ragged_flatten(code), -3)",
        "ragged_at(code_id, -2, 0)",
        "ragged_at(time, ragged_count(code_id) % 7)",
        "time[1]",
        "time[-2]",
        "code_id[-1][1]",
        "ragged_sum(numeric_value)",
        "ragged_tail(code_id, 1) , code_id, ragged_count(code_id) + 1, subject_id * 2",
        "ragged_tail(code_id, ragged_count(code_id) % 4)",
        "subject_id, boolean_value, prediction_time",
        "1",
    ] {
        let plan = query_text(&ctx, &format!("EXPLAIN SELECT {e} FROM {from}")).await;
        assert!(!plan.contains("ProjectionExec"), "{plan}");
        let a = query_one_batch(&ctx, &format!("SELECT {e} FROM {from}")).await;
        let b = query_one_batch(&ctx, &format!("SELECT {e} FROM t")).await;
        assert_eq!(a.columns(), b.columns(), "{e}");
    }
    let none = |columns: &[ArrayRef]| columns.iter().all(|c| c.is_empty());
    for condition in [
        "boolean_value",
        "NOT boolean_value AND ragged_count(code_id) % 3 = 1",
        "ragged_at(time, -1) > prediction_time - INTERVAL '1 day'",
        "ragged_at(numeric_value, -1, 0) > 10",
        "subject_id IN (SELECT subject_id FROM t WHERE boolean_value)",
        "ragged_any(numeric_value > 150)",
        "false",
        "NULL::boolean",
    ] {
        let of = |table: &str| {
            format!(
                "SELECT subject_id, prediction_time, ragged_tail(code_id, 2), ragged_lengths(time) FROM {table} WHERE {condition} ORDER BY 1, 2"
            )
        };
        let a = query_batches(&ctx, &of(&from)).await.unwrap();
        let b = query_batches(&ctx, &of("t")).await.unwrap();
        let columns = |batches: &[RecordBatch]| match batches.first() {
            None => Vec::new(),
            Some(one) => concat_batches(&one.schema(), batches).unwrap().columns().to_vec(),
        };
        let (a, b) = (columns(&a), columns(&b));
        assert!(a == b || (none(&a) && none(&b)), "{condition}");
    }
    let sum = |table: &str| format!("SELECT sum(ragged_count(code_id)) FROM {table}");
    assert_eq!(query_int(&ctx, &sum(&from)).await, query_int(&ctx, &sum("t")).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditions_and_tails_are_evaluated_in_the_scan() {
    let ctx = create_parallel_session();
    let from = read_as_of(MEDS, Path::new(LABELS));
    let sql = format!(
        "SELECT subject_id, ragged_tail(code_id, 10) FROM {from} WHERE boolean_value AND ragged_count(code_id) > 5"
    );
    let plan = query_text(&ctx, &format!("EXPLAIN {sql}")).await;
    assert!(!plan.contains("FilterExec") && !plan.contains("ProjectionExec"), "{plan}");
    assert!(plan.contains("MedsAsOf: folder=tests/data/synthea-meds"), "{plan}");
    // Batches are sized by the ten events that remain, not by the whole history.
    query_batches(&ctx, "SET serrate.leaf_batch_size = 100000").await.unwrap();
    let cut =
        query_batches(&ctx, &format!("SELECT ragged_tail(code_id, 10) FROM {from}")).await.unwrap();
    let all = query_batches(&ctx, &format!("SELECT code_id FROM {from}")).await.unwrap();
    assert!(cut.len() * 3 < all.len(), "{} and {} batches", cut.len(), all.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn labels_are_unsorted_and_of_unknown_subjects() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.parquet");
    // The first event of subject 8 is in 1920; subjects 99 and 98 do not exist.
    let day = 86_400_000_000;
    let rows = [
        (8, 50 * 365 * day, true),
        (99, 0, true),
        (1, 40 * 365 * day, false),
        (8, -100_000 * day, true),
        (8, 10 * 365 * day, false),
        (98, 0, false),
        (8, 50 * 365 * day, false),
    ];
    labels_file(&path, &rows);
    let from = read_as_of(MEDS, &path);
    let known: Vec<i64> = rows.iter().map(|r| r.0).filter(|id| *id < 90).collect();
    assert_eq!(query_ints(&ctx, &format!("SELECT subject_id FROM {from}")).await, known);
    let lengths = query_ints(&ctx, &format!("SELECT ragged_lengths(time) FROM {from}")).await;
    assert_eq!(lengths[2], 0);
    assert!(lengths[0] > lengths[3] && lengths[3] > 0 && lengths[0] == lengths[4], "{lengths:?}");
    let empty = format!("SELECT ragged_lengths(code_id) FROM {from} WHERE code_id IS NOT NULL");
    assert_eq!(query_ints(&ctx, &empty).await, lengths);
    let statics = format!("SELECT ragged_lengths(static_code) FROM {from}");
    let statics = query_ints(&ctx, &statics).await;
    assert!(statics[2] > 0 && statics[2] == statics[0], "{statics:?}");
    assert_eq!(query_ints(&ctx, &format!("SELECT subject_id FROM {from} LIMIT 2")).await, [8, 1]);
    assert_eq!(
        query_ints(&ctx, &format!("SELECT subject_id FROM {from} LIMIT 2 OFFSET 1")).await,
        [1, 8]
    );
    assert_eq!(query_int(&ctx, &format!("SELECT count(*) FROM {from}")).await, 5);

    // Labels of subjects without data are counted.
    let frame = ctx.sql(&format!("SELECT count(*) FROM {from}")).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    datafusion::physical_plan::collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    assert_eq!(serrate::sql::unknown_labels(&plan), 2);
    let analyzed =
        query_text(&ctx, &format!("EXPLAIN ANALYZE SELECT subject_id FROM {from}")).await;
    assert!(analyzed.contains("labels_of_unknown_subjects=2"), "{analyzed}");

    // COPY writes the rows in the order of the labels.
    let out = dir.path().join("out.nrt");
    let copy = format!(
        "COPY (SELECT prediction_time::BIGINT AS due, ragged_tail(time_delta_days, 4) AS days, ragged_tail(code_id, 4) AS code FROM {from}) TO '{}'",
        display_path(&out)
    );
    query_batches(&ctx, &copy).await.unwrap();
    let table = nrt::NrtFile::open(&out, &Default::default()).unwrap().table().unwrap();
    let due = table.column("due").unwrap().values().clone();
    let expected: Vec<i64> = rows.iter().filter(|r| r.0 < 90).map(|r| r.1).collect();
    assert_eq!(due.as_primitive::<Int64Type>().values(), expected.as_slice());
    assert_eq!(table.array("days").unwrap().lengths(1).unwrap(), [4, 4, 0, 1, 4]);

    // A file without labels gives no rows.
    labels_file(&path, &[]);
    assert_eq!(query_int(&ctx, &format!("SELECT count(*) FROM {from}")).await, 0);
    assert!(query_batches(&ctx, &format!("SELECT * FROM {from}")).await.unwrap().len() < 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_keep_the_order_of_labels_in_every_query() {
    let config = SessionConfig::new().with_target_partitions(8).with_batch_size(16);
    let ctx = serrate::sql::session_with(config);
    let rows = read_as_of(MEDS, Path::new(LABELS));
    let order =
        query_one_batch(&ctx, &format!("SELECT subject_id, prediction_time FROM {rows}")).await;
    let expected = Labels::read(LABELS).unwrap();
    assert_eq!(order.column(0).as_primitive::<Int64Type>(), expected.subject_ids());
    let (keys, inner) = (
        "subject_id, prediction_time",
        format!("(SELECT *, ragged_tail(code, 2) AS c FROM {rows})"),
    );
    for (sql, n) in [
        (
            format!(
                "SELECT {keys}, ragged_tail(code, 2) AS c, ragged_lengths(code) AS n FROM {rows} LIMIT 1500"
            ),
            1500,
        ),
        (format!("SELECT {keys}, ragged_lengths(c) AS n FROM {inner}"), order.num_rows()),
        (
            format!(
                "SELECT {keys}, ragged_count(c) AS n FROM {inner} WHERE ragged_count(c) >= 0 LIMIT 900"
            ),
            900,
        ),
    ] {
        for _ in 0..3 {
            let found = query_one_batch(&ctx, &sql).await;
            assert_eq!(found.num_rows(), n, "{sql}");
            for column in 0..2 {
                assert_eq!(
                    found.column(column).to_data(),
                    order.column(column).slice(0, n).to_data(),
                    "{sql}"
                );
            }
        }
        let plan = query_one_batch(&ctx, &format!("EXPLAIN {sql}")).await;
        let plan = plan.column(1).as_string::<i32>().value(1).to_owned();
        assert!(plan.contains("MedsAsOf") && !plan.contains("RoundRobin"), "{plan}");
        assert!(!plan.contains("code@5 as code]"), "whole lists are copied: {plan}");
    }
    // COPY needs an order for a training set; the column `subject_id` alone gives none.
    let dir = tempfile::tempdir().unwrap();
    let copy = format!(
        "COPY (SELECT subject_id, boolean_value, ragged_tail(ragged_flatten(code_id), 8) AS c
               FROM {rows} WHERE subject_id IN (SELECT 8 UNION ALL SELECT 18))
         TO '{}/' STORED AS BATCHES (batch 64, len 8)",
        display_path(&dir.path().join("out"))
    );
    let e = match serrate::sql::sql(&ctx, &copy).await {
        Ok(frame) => frame.collect().await.unwrap_err().to_string(),
        Err(e) => e.to_string(),
    };
    assert!(e.contains("ORDER BY"), "{e}");
}

#[tokio::test]
async fn times_finer_than_microseconds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &Path, columns: Vec<(&str, ArrayRef)>| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    };
    let fine = |ns: i64| Arc::new(TimestampNanosecondArray::from(vec![ns])) as ArrayRef;
    let one = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let code = || Arc::new(StringArray::from(vec!["A"])) as ArrayRef;
    let ctx = create_parallel_session();
    for (event, label, refused) in [
        (10_900, 10_000, true),
        (10_000, 10_500, true),
        (10_000, -500, true),
        (10_000, 10_000, false),
    ] {
        let (data, labels) = (dir.path().join("m/data/0.parquet"), dir.path().join("l/0.parquet"));
        write(&data, vec![("subject_id", one()), ("time", fine(event)), ("code", code())]);
        write(&labels, vec![("subject_id", one()), ("prediction_time", fine(label))]);
        let root = display_path(&dir.path().join("m"));
        let sql = format!("SELECT * FROM {}", read_as_of(&root, &dir.path().join("l")));
        let found = match serrate::sql::sql(&ctx, &sql).await {
            Ok(frame) => frame.collect().await.map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        if refused {
            let e = found.unwrap_err();
            assert!(e.contains("finer than microseconds") && e.contains("row 0"), "{e}");
        } else {
            assert_eq!(found.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn further_columns_end_at_the_prediction_time() {
    let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.parquet");
    let tiny = "tests/data/tiny-meds";
    let subjects = query_ints(&ctx, &format!("SELECT subject_id FROM meds('{tiny}')")).await;
    let mut rows: Vec<(i64, i64, bool)> = Vec::new();
    for id in &subjects {
        rows.push((*id, i64::MAX, true));
        rows.push((*id, i64::MIN, false));
    }
    labels_file(&path, &rows);
    let from = read_as_of(tiny, &path);
    // A label at the greatest timestamp has the whole history.
    let columns = "subject_id, time, time_delta_days, code, numeric_value, text_value, static_code, static_text_value";
    let a =
        query_one_batch(&ctx, &format!("SELECT {columns} FROM {from} WHERE boolean_value")).await;
    let b = query_one_batch(&ctx, &format!("SELECT {columns} FROM meds('{tiny}')")).await;
    let rows =
        |b: &RecordBatch| pretty_format_batches(std::slice::from_ref(b)).unwrap().to_string();
    assert_eq!(rows(&a), rows(&b));
    let before = format!(
        "SELECT sum(ragged_lengths(text_value) + ragged_count(code)) FROM {from} WHERE NOT boolean_value"
    );
    assert_eq!(query_int(&ctx, &before).await, 0);
    let texts = format!(
        "SELECT ragged_tail(ragged_flatten(text_value), 1) AS t FROM {from} WHERE ragged_count(text_value) > 0"
    );
    let all = format!(
        "SELECT ragged_tail(ragged_flatten(text_value), 1) AS t FROM meds('{tiny}') WHERE ragged_count(text_value) > 0"
    );
    assert_eq!(query_text(&ctx, &texts).await, query_text(&ctx, &all).await);
}

#[tokio::test]
async fn invalid_arguments_and_labels_are_refused() {
    let ctx = create_parallel_session();
    for sql in [
        "SELECT * FROM meds_asof('tests/data/synthea-meds')",
        "SELECT * FROM meds_asof('tests/data/synthea-meds', 3)",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("file or folder of labels"), "{e}");
    }
    let e =
        error(&ctx, "SELECT * FROM meds_asof('nowhere', 'tests/data/synthea-meds/labels')").await;
    assert!(e.contains("nowhere"), "{e}");
    let e = error(&ctx, "SELECT * FROM meds_asof('tests/data/synthea-meds', 'nowhere')").await;
    assert!(e.contains("nowhere"), "{e}");
    let data = "tests/data/synthea-meds/data/train";
    let e = error(&ctx, &format!("SELECT * FROM meds_asof('{MEDS}', '{data}')")).await;
    assert!(e.contains("prediction_time") && e.contains("0.parquet"), "{e}");

    let labels = Labels::read(LABELS).unwrap();
    let mut twice = read_shards(MEDS);
    twice.push(twice[0].clone());
    let e = AsOf::try_new(twice, &labels).unwrap_err().to_string();
    assert!(e.contains("has rows in the shards"), "{e}");
    let mut unsorted = read_shards(MEDS);
    let events = &unsorted[1].events;
    let columns = events.columns().iter().map(|c| match c.name() {
        "time" => {
            let times = c.values().as_primitive::<TimestampMicrosecondType>();
            let times: TimestampMicrosecondArray = times.iter().map(|t| t.map(|t| -t)).collect();
            serrate::table::Column::new("time", 1, Arc::new(times))
        }
        _ => c.clone(),
    });
    unsorted[1].events = events.with_columns(columns.collect()).unwrap();
    let e = AsOf::try_new(unsorted, &labels).unwrap_err().to_string();
    assert!(e.contains("not ascending"), "{e}");
}

/// Writes one subject with two events of two measurements, each with a string.
fn write_note(path: &Path, note: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter([
        ("subject_id", Arc::new(Int64Array::from(vec![1; 5])) as ArrayRef),
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(vec![
                None,
                Some(5),
                Some(5),
                Some(9),
                Some(9),
            ])),
        ),
        ("code", Arc::new(StringArray::from(vec!["s", "a", "b", "a", "c"]))),
        (note, Arc::new(StringArray::from(vec!["n0", "n1", "n2", "n3", "n4"]))),
    ])
    .unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn columns_of_the_data_may_have_the_names_of_label_columns() {
    let dir = tempfile::tempdir().unwrap();
    write_note(&dir.path().join("meds/data/0.parquet"), "static_boolean_value");
    labels_file(&dir.path().join("labels.parquet"), &[(1, 5, true)]);
    let from =
        read_as_of(&display_path(&dir.path().join("meds")), &dir.path().join("labels.parquet"));
    let rows = query_one_batch(
        &create_parallel_session(),
        &format!("SELECT static_boolean_value AS events, static_static_boolean_value AS facts, static_code FROM {from}"),
    )
    .await;
    let shown = pretty_format_batches(std::slice::from_ref(&rows)).unwrap().to_string();
    assert!(
        shown.contains("[[n1, n2]]") && shown.contains("[n0]") && !shown.contains("n3"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn labels_of_unknown_subjects_are_counted_once_per_data_set() {
    let dir = tempfile::tempdir().unwrap();
    let labels = dir.path().join("labels.parquet");
    labels_file(&labels, &[(8, i64::MAX, true), (-5, 1, true), (-6, 1, false)]);
    let ctx = create_parallel_session();
    let unknown = async |sql: &str| {
        let frame = serrate::sql::sql(&ctx, sql).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.unwrap();
        datafusion::physical_plan::collect(Arc::clone(&plan), task).await.unwrap();
        serrate::sql::unknown_labels(&plan)
    };
    let one = read_as_of(MEDS, &labels);
    assert_eq!(unknown(&format!("SELECT subject_id FROM {one}")).await, 2);
    assert_eq!(
        unknown(&format!(
            "SELECT a.subject_id FROM {one} a JOIN {one} b ON a.subject_id = b.subject_id"
        ))
        .await,
        2
    );
    assert_eq!(
        unknown(&format!("SELECT subject_id FROM {one} UNION ALL SELECT subject_id FROM {one}"))
            .await,
        2
    );
    // Two labels of each of two data sets have no subject.
    let two = read_as_of(COHORT, &labels);
    assert_eq!(
        unknown(&format!("SELECT subject_id FROM {one} UNION ALL SELECT subject_id FROM {two}"))
            .await,
        4
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_subject_in_two_shards_is_refused_without_naming_a_setting() {
    let dir = tempfile::tempdir().unwrap();
    write_note(&dir.path().join("meds/data/0.parquet"), "note");
    write_note(&dir.path().join("meds/data/1.parquet"), "note");
    labels_file(&dir.path().join("labels.parquet"), &[(1, 5, true)]);
    let from =
        read_as_of(&display_path(&dir.path().join("meds")), &dir.path().join("labels.parquet"));
    let ctx = create_parallel_session();
    let refused = async || {
        let sql = format!("SELECT code FROM {from}");
        query_batches(&ctx, &sql).await.unwrap_err().to_string()
    };
    let e = refused().await;
    assert!(e.contains("subject 1") && e.contains("merge the files"), "{e}");
    assert!(!e.contains("shared_subjects"), "{e}");
    query_batches(&ctx, "SET serrate.meds_shared_subjects = true").await.unwrap();
    assert_eq!(refused().await, e);
}
