//! `COPY .. STORED AS BATCHES` writes batches of tensors for training.

use serrate::dense::{DType, DenseTensor};
use serrate::io::safetensors::{FileAccess, dense};

use super::*;

/// Returns the tensors of the batches in a folder, in the order of `batches.json`.
fn read_batches(folder: &Path) -> Vec<Vec<(String, DenseTensor)>> {
    let text = std::fs::read_to_string(folder.join("batches.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&text).unwrap();
    let batches = index["batches"].as_array().unwrap();
    let files = batches.iter().map(|b| folder.join(b["file"].as_str().unwrap()));
    let read: Vec<_> = files.map(|file| dense::read(file, FileAccess::Read).unwrap()).collect();
    for (batch, tensors) in batches.iter().zip(&read) {
        let items = usize::try_from(batch["items"].as_u64().unwrap()).unwrap();
        assert!(tensors.iter().all(|(_, t)| t.shape()[0] == items || batch["packed"].is_null()));
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), read.len() + 1);
    read
}

fn find_tensor<'a>(batch: &'a [(String, DenseTensor)], name: &str) -> &'a DenseTensor {
    let names: Vec<&str> = batch.iter().map(|(n, _)| n.as_str()).collect();
    let found = batch.iter().find(|(n, _)| n == name);
    &found.unwrap_or_else(|| panic!("no {name} in {names:?}")).1
}

fn list_ids(batches: &[Vec<(String, DenseTensor)>]) -> Vec<i64> {
    let of = |b: &Vec<_>| find_tensor(b, "id").as_slice::<i64>().unwrap().to_vec();
    batches.iter().flat_map(of).collect()
}

async fn copy_query(
    ctx: &SessionContext,
    query: &str,
    folder: &Path,
    options: &str,
) -> Result<i64> {
    let sql = format!("COPY ({query}) TO '{}' STORED AS BATCHES {options}", display_path(folder));
    let batches = serrate::sql::sql(ctx, &sql).await?.collect().await?;
    let counts = datafusion::arrow::compute::cast(
        batches[0].column(0),
        &datafusion::arrow::datatypes::DataType::Int64,
    )?;
    Ok(counts.as_primitive::<Int64Type>().value(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn queries_are_written_as_padded_batches() {
    let dir = tempfile::tempdir().unwrap();
    for part in 0..3 {
        write_table(
            &dir.path().join(format!("in/{part}.nrt")),
            &make_numbered_table(part * 100, 100),
        );
    }
    let ctx = create_parallel_session();
    let from = format!("SELECT id, code FROM '{}'", display_path(&dir.path().join("in")));
    let out = dir.path().join("out");
    assert_eq!(copy_query(&ctx, &from, &out, "(batch 64)").await.unwrap(), 300);
    let batches = read_batches(&out);
    assert_eq!(batches.len(), 5);
    // The items are in source order, although four partitions read them.
    assert_eq!(list_ids(&batches), (0..300).collect::<Vec<i64>>());
    let code = find_tensor(&batches[1], "code");
    assert_eq!((code.dtype(), code.shape()), (DType::I64, [64, 1, 9].as_slice()));
    let mask = find_tensor(&batches[1], "dim2/mask");
    let found: Vec<i64> = code
        .as_slice::<i64>()
        .unwrap()
        .iter()
        .zip(mask.as_bytes())
        .filter_map(|(code, there)| (*there == 1).then_some(*code))
        .collect();
    assert_eq!(
        found,
        (64..128).flat_map(|i| (0..i % 10).map(move |k| i * 10 + k)).collect::<Vec<i64>>()
    );

    // COPY to an existing folder is refused without `overwrite`.
    let e = copy_query(&ctx, &from, &out, "(batch 64)").await.unwrap_err().strip_backtrace();
    assert!(e.contains("exists") && e.contains("overwrite true"), "{e}");
    let options =
        "OPTIONS (batch 100, shuffle true, seed 7, epochs 2, drop_last true, overwrite true)";
    copy_query(&ctx, &format!("{from} WHERE id < 250"), &out, options).await.unwrap();
    let batches = read_batches(&out);
    assert_eq!(batches.len(), 4);
    assert_ne!(list_ids(&batches[..2]), list_ids(&batches[2..]));
    let again = dir.path().join("again");
    copy_query(&ctx, &format!("{from} WHERE id < 250"), &again, options).await.unwrap();
    assert_eq!(list_ids(&read_batches(&again)), list_ids(&batches));
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    let e = copy_query(&ctx, &from, &out, "(batch 64, overwrite true)").await.unwrap_err();
    assert!(e.strip_backtrace().contains("notes.txt"), "{e}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn length_packed_form_and_padding_side_are_options() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let table = RaggedTable::builder()
        .lengths([5, 0, 2])
        .unwrap()
        .column("id", 0, make_ints([0, 1, 2]))
        .column("v", 1, make_ints(1..8))
        .build()
        .unwrap();
    serrate::sql::register_table(&ctx, "t", table).unwrap();
    let made = async |name: &str, options: &str| {
        let out = dir.path().join(name);
        copy_query(&ctx, "SELECT id, v FROM t", &out, options).await.unwrap();
        read_batches(&out)
    };
    let v = |batch: &[(String, DenseTensor)]| {
        (
            find_tensor(batch, "v").shape().to_vec(),
            find_tensor(batch, "v").as_slice::<i64>().unwrap().to_vec(),
        )
    };
    let end = made("end", "(batch 3, len 3)").await;
    assert_eq!(v(&end[0]), (vec![3, 3], vec![3, 4, 5, 0, 0, 0, 6, 7, 0]));
    let start = made("start", "(batch 3, len 3, window 'start', side 'left')").await;
    assert_eq!(v(&start[0]), (vec![3, 3], vec![1, 2, 3, 0, 0, 0, 0, 6, 7]));
    let step = made("step", "(batch 10, len 2, window 'step')").await;
    assert_eq!(list_ids(&step), [0, 0, 0, 1, 2]);
    let fixed = made("fixed", "(batch 2, len 8, fixed true)").await;
    assert_eq!(find_tensor(&fixed[1], "v").shape(), [1, 8]);
    let out = dir.path().join("packed");
    copy_query(&ctx, "SELECT id, v FROM t", &out, "(batch 3, len 3, packed true)").await.unwrap();
    let packed = dense::read(out.join("batch-000000.safetensors"), FileAccess::Read).unwrap();
    assert_eq!(find_tensor(&packed, "v").as_slice::<i64>().unwrap(), [3, 4, 5, 6, 7]);
    assert_eq!(find_tensor(&packed, "dim1/cu_seqlens").as_slice::<i32>().unwrap(), [0, 3, 3, 5]);
    let kept = dir.path().join("kept");
    copy_query(&ctx, "SELECT id::SMALLINT AS id, v FROM t", &kept, "(batch 3, keep_types true)")
        .await
        .unwrap();
    let kept = dense::read(kept.join("batch-000000.safetensors"), FileAccess::Read).unwrap();
    assert_eq!(find_tensor(&kept, "id").dtype(), DType::I16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_of_labels_end_at_the_prediction_time() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET serrate.leaf_batch_size = 3000").await.unwrap();
    let out = dir.path().join("out");
    let from = "meds_asof('tests/data/synthea-meds-torch-data', 'tests/data/synthea-meds/labels')";
    let query = format!(
        "SELECT subject_id AS id, prediction_time::BIGINT AS due, boolean_value, ragged_tail(time, 4) AS time, ragged_tail(code_id, 4) AS code FROM {from}"
    );
    assert_eq!(copy_query(&ctx, &query, &out, "(batch 256, len 4)").await.unwrap(), 1715);
    let batches = read_batches(&out);
    assert_eq!(
        list_ids(&batches),
        query_ints(&ctx, &format!("SELECT subject_id FROM {from}")).await
    );
    for batch in &batches {
        let due = find_tensor(batch, "due").as_slice::<i64>().unwrap();
        let time = find_tensor(batch, "time");
        let width = time.shape()[1];
        assert!(width <= 4);
        for (row, times) in time.as_slice::<i64>().unwrap().chunks(width).enumerate() {
            let mask = &find_tensor(batch, "dim1/mask").as_bytes()[row * width..][..width];
            assert!(times.iter().zip(mask).all(|(t, there)| *there == 0 || *t <= due[row]));
        }
    }
}

#[tokio::test]
async fn queries_that_cannot_be_batched_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let out = dir.path().join("out");
    for (query, options, part) in [
        ("SELECT [1] AS v", "", "batch 256"),
        ("SELECT [1] AS v", "(len 3)", "needs option 'batch', the number of items per batch"),
        ("SELECT [1] AS v", "(batch 0)", "at least 1"),
        ("SELECT [1] AS v", "(batch x)", "'batch' must be an integer of 0 or more, not 'x'"),
        ("SELECT [1] AS v", "(batch 1, size 3)", "no option 'size'"),
        (
            "SELECT [1] AS v",
            "(batch 1, window 'random')",
            "needs option 'len', the length of the windows",
        ),
        (
            "SELECT [1] AS v",
            "(batch 1, fixed true)",
            "needs option 'len', the length of each padded list",
        ),
        ("SELECT [1] AS v", "(batch 1, len 2, window 'middle')", "'middle'"),
        ("SELECT [1] AS v", "(batch 1, len 2, stride 2)", "window 'step'"),
        ("SELECT [1] AS v", "(batch 1, packed maybe)", "true or false"),
        ("SELECT ['a'] AS v", "(batch 1)", "\"v\""),
        ("SELECT [1] AS a, [1, 2] AS b", "(batch 1)", "\"b\""),
    ] {
        let e = copy_query(&ctx, query, &out, options).await.unwrap_err().strip_backtrace();
        assert!(e.contains(part), "{options}: {e}");
        assert!(!out.exists(), "{options}");
    }
    let e = copy_query(
        &ctx,
        "SELECT v, count(*) AS n FROM (SELECT unnest([1, 2]) AS v) GROUP BY v",
        &out,
        "(batch 1)",
    )
    .await
    .unwrap_err()
    .strip_backtrace();
    assert!(e.contains("ORDER BY"), "{e}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was left behind");
    // STORED AS BATCHES within a string or a comment is not a clause.
    let rows =
        serrate::sql::sql(&ctx, "SELECT 'stored as batches (' AS t -- stored as batches (\n").await;
    assert_eq!(rows.unwrap().collect().await.unwrap()[0].num_rows(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn options_without_an_effect_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.nrt");
    write_table(&file, &make_numbered_table(0, 20));
    let ctx = create_parallel_session();
    let from = format!("SELECT id, code FROM '{}'", display_path(&file));
    let out = dir.path().join("out");
    for (options, parts) in [
        ("(batch 4, epochs 0)", ["'epochs' must be at least 1", "not 0"]),
        ("(batch 4, inner 0)", ["'inner' must be at least 1", "not 0"]),
        ("(batch 4, len 0)", ["'len' must be at least 1", "not 0"]),
        ("(batch 4, packed true, inner 3)", ["'inner' applies to padding", "'packed'"]),
        ("(batch 4, len 3, packed true, fixed true)", ["'fixed' applies to padding", "'packed'"]),
        ("(batch 4, packed true, side 'left')", ["'side' applies to padding", "'packed'"]),
        ("(batch 4, 'batch.size' 9)", ["no option 'batch.size'", "bucket"]),
        ("(batch 4, len 3, window 'balanced', stride 2)", ["requires window", "'step'"]),
        ("(batch 4, seed 7)", ["'seed' applies to a random order", "shuffle true"]),
        ("(batch 4, len 3, seed 0, shuffle false)", ["'seed' applies to", "remove 'seed'"]),
        ("(batch 4, len 3, window 'step', seed 7)", ["'seed' applies to", "window 'random'"]),
    ] {
        let e = copy_query(&ctx, &from, &out, options).await.unwrap_err().to_string();
        assert!(parts.iter().all(|part| e.contains(part)), "{options}: {e}");
        assert!(!out.exists(), "{options}");
    }
    copy_query(&ctx, &from, &out, "(batch 4, len 3, window 'balanced', seed 1)").await.unwrap();
    assert_eq!(read_batches(&out).len(), 5);
}
