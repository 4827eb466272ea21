//! Changed bytes and truncations of small files of every format: SQL and the readers of the core
//! return a table, or an error that names the file, and do not panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serrate::arrow::array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int32Array, ListArray, RecordBatch,
    StringArray, StringDictionaryBuilder, StructArray,
};
use serrate::arrow::datatypes::{Int8Type, Int64Type};
use serrate::arrow::ipc::CompressionType;
use serrate::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use serrate::io::arrow_ipc::{IpcReadOptions, IpcTableReader};
use serrate::io::parquet::{ParquetReadOptions, ParquetTableReader, ParquetTableWriter};
use serrate::io::safetensors::{FileAccess, dense};

use datafusion::error::DataFusionError;
use futures::FutureExt;
use std::fs;
use tempfile::TempDir;

use super::dictionary_counts::{OVERSTATED, overstate_dictionary};
use super::*;

fn make_mixed_batch() -> RecordBatch {
    let lists = || {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), None, Some(3)]),
            None,
            Some(vec![]),
            Some(vec![Some(4)]),
        ])) as ArrayRef
    };
    let mut codes = StringDictionaryBuilder::<Int8Type>::new();
    codes.extend([Some("a"), None, Some("bé"), Some("a")]);
    let pairs: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..4).map(|i| Some([Some(i), None])),
        2,
    ));
    let int: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    RecordBatch::try_from_iter_with_nullable([
        ("id", int.clone(), true),
        ("x", lists(), true),
        ("code", Arc::new(codes.finish()) as ArrayRef, true),
        ("f", Arc::new(Float64Array::from(vec![1.5, f64::NAN, 0.0, -1.0])) as ArrayRef, true),
        (
            "b",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), None])) as ArrayRef,
            true,
        ),
        (
            "s",
            Arc::new(StringArray::from(vec![Some("x"), None, Some("ü"), Some("")])) as ArrayRef,
            true,
        ),
        ("p", pairs, true),
        ("st", Arc::new(StructArray::try_from(vec![("i", int)]).unwrap()) as ArrayRef, true),
    ])
    .unwrap()
}

fn write_arrow(stream: bool, codec: Option<CompressionType>) -> Vec<u8> {
    let batch = make_mixed_batch();
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    if stream {
        let mut out =
            StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        out.write(&batch).unwrap();
        return out.into_inner().unwrap();
    }
    let mut out = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    out.write(&batch).unwrap();
    out.into_inner().unwrap()
}

fn write_parquet(dir: &TempDir) -> Vec<u8> {
    // A `RaggedTable` holds only columns whose lists have equal lengths in each row.
    let batch = make_mixed_batch().project(&[0, 1, 3, 4, 5]).unwrap();
    let path = dir.path().join("good.parquet");
    let mut out = ParquetTableWriter::create(&path, &batch.schema(), &Default::default()).unwrap();
    out.write_batch(&batch).unwrap();
    out.finish().unwrap();
    fs::read(&path).unwrap()
}

/// Returns copies of a file with one changed byte, or truncated, each with a description. Covers
/// every position if `SERRATE_DAMAGE_ALL` is set, otherwise a sample of positions.
fn list_damages(good: &[u8]) -> Vec<(String, Vec<u8>)> {
    let step = if std::env::var_os("SERRATE_DAMAGE_ALL").is_some() { 1 } else { 29 };
    let mut all = Vec::new();
    for at in (0..good.len()).step_by(step) {
        for flip in [0xff, 1 << (at % 8)] {
            let mut bytes = good.to_vec();
            bytes[at] ^= flip;
            all.push((format!("byte {at} ^ {flip:#x}"), bytes));
        }
        all.push((format!("cut at {at}"), good[..at].to_vec()));
    }
    all
}

/// Reads each damaged copy of `good` by SQL, and by `read`, the reader of the command `convert`.
async fn check_damages(
    name: &str,
    good: Vec<u8>,
    read: impl Fn(&std::path::Path) -> serrate::Result<usize>,
) {
    let dir = TempDir::new().unwrap();
    let ctx = serrate::sql::session();
    let ending = name.rsplit('.').next().unwrap();
    for (i, (what, bytes)) in list_damages(&good).into_iter().enumerate() {
        // Each file has a new name, so that no cache holds the file before it.
        let file = format!("{i}.{ending}");
        let path = dir.path().join(&file);
        fs::write(&path, bytes).unwrap();
        let what = format!("{name}: {what}");
        check_statements(&ctx, &what, &file, &[format!("SELECT * FROM '{}'", path.display())])
            .await;
        match catch_unwind(AssertUnwindSafe(|| read(&path))) {
            Ok(Ok(_)) => {}
            Ok(Err(e)) => assert!(e.to_string().contains(&file), "{what}: {e}"),
            Err(_) => panic!("{what}: the reader panicked"),
        }
        fs::remove_file(&path).unwrap();
    }
}

/// Runs statements until one fails. Its error must name `file`.
async fn check_statements(ctx: &SessionContext, what: &str, file: &str, statements: &[String]) {
    let run = async {
        for statement in statements {
            let batches = serrate::sql::sql(ctx, statement).await?.collect().await?;
            // Formatting the rows reads every value.
            pretty_format_batches(&batches)?;
        }
        Ok::<_, DataFusionError>(())
    };
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => {
            let text = e.strip_backtrace();
            assert!(text.contains(file), "{what}: no file in {text:?}");
        }
        Err(_) => panic!("{what}: SQL panicked"),
    }
}

fn read_arrow(path: &std::path::Path) -> serrate::Result<usize> {
    let mut reader = IpcTableReader::open(path, &IpcReadOptions::default())?;
    let mut rows = 0;
    while let Some(batch) = reader.next_batch() {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

#[tokio::test]
async fn damaged_arrow_files_are_errors() {
    check_damages("plain.arrow", write_arrow(false, None), read_arrow).await;
    check_damages("lz4.arrow", write_arrow(false, Some(CompressionType::LZ4_FRAME)), read_arrow)
        .await;
    check_damages("zstd.arrow", write_arrow(false, Some(CompressionType::ZSTD)), read_arrow).await;
}

#[tokio::test]
async fn damaged_arrow_streams_are_errors() {
    check_damages("stream.arrow", write_arrow(true, None), read_arrow).await;
    check_damages("zstd-stream.arrow", write_arrow(true, Some(CompressionType::ZSTD)), read_arrow)
        .await;
}

#[tokio::test]
async fn damaged_parquet_files_are_errors() {
    let dir = TempDir::new().unwrap();
    check_damages("file.parquet", write_parquet(&dir), |path| {
        let mut reader = ParquetTableReader::open(path, &ParquetReadOptions::default())?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch() {
            rows += batch?.num_rows();
        }
        Ok(rows)
    })
    .await;
}

#[tokio::test]
async fn parquet_dictionaries_with_more_numbers_than_bytes_are_errors() {
    let dir = TempDir::new().unwrap();
    let query = "SELECT (value % 10000)::INT AS n FROM generate_series(1, 20000)";
    let mut bytes = write_rows(&dir, "good.parquet", query).await;
    overstate_dictionary(&mut bytes);
    let path = dir.path().join("overstated.parquet");
    fs::write(&path, bytes).unwrap();
    let ctx = serrate::sql::session();
    for rows in ["", " WHERE n = 7", " LIMIT 3"] {
        let query = format!("SELECT n FROM '{}'{rows}", display_path(&path));
        let run = async { serrate::sql::sql(&ctx, &query).await?.collect().await };
        let error = run.await.unwrap_err().strip_backtrace();
        let expected = format!("column \"n\" declares {OVERSTATED} numbers of 4 bytes");
        assert!(error.contains(&expected) && error.contains("overstated.parquet"), "{error}");
    }
}

/// Returns the bytes of a file of the rows of a query, in the format of the extension of `name`.
async fn write_rows(dir: &TempDir, name: &str, query: &str) -> Vec<u8> {
    let path = dir.path().join(name);
    let copy = format!("COPY ({query}) TO '{}'", display_path(&path));
    serrate::sql::sql(&serrate::sql::session(), &copy).await.unwrap().collect().await.unwrap();
    fs::read(&path).unwrap()
}

#[tokio::test]
async fn damaged_nrt_files_are_errors() {
    let dir = TempDir::new().unwrap();
    let query = "SELECT value AS id, value * 1.5 AS f, [value, 1] AS x FROM generate_series(1, 3)";
    let good = write_rows(&dir, "good.nrt", query).await;
    check_damages("file.nrt", good, |path| {
        let file = nrt::NrtFile::open(path, &nrt::ReadOptions::default())?;
        Ok(file.table()?.num_rows())
    })
    .await;
}

/// Files of text are read by SQL here; the test `damaged_files_are_errors_of_convert` of the
/// command converts them.
#[tokio::test]
async fn damaged_text_files_are_errors() {
    let dir = TempDir::new().unwrap();
    let query = "SELECT value AS id, value * 1.5 AS f, [value, 1] AS x, 'é' || value AS s \
        FROM generate_series(1, 3)";
    for name in ["file.csv", "file.json", "file.ndjson"] {
        let good = write_rows(&dir, name, query).await;
        check_damages(name, good, |_| Ok(0)).await;
    }
}

/// SQL refuses files of dense tensors, so that this test covers the reader.
#[tokio::test]
async fn damaged_dense_tensors_are_errors() {
    let dir = TempDir::new().unwrap();
    let query = "SELECT value AS id, value * 1.5 AS f FROM generate_series(1, 3)";
    let good = write_rows(&dir, "good.safetensors", query).await;
    for (i, (what, bytes)) in list_damages(&good).into_iter().enumerate() {
        let file = format!("{i}.safetensors");
        let path = dir.path().join(&file);
        fs::write(&path, bytes).unwrap();
        match catch_unwind(AssertUnwindSafe(|| dense::read(&path, FileAccess::Read))) {
            Ok(Ok(_)) => {}
            Ok(Err(e)) => assert!(e.to_string().contains(&file), "{what}: {e}"),
            Err(_) => panic!("{what}: the reader panicked"),
        }
    }
}

#[tokio::test]
async fn damaged_sparse_tensors_are_errors() {
    let dir = TempDir::new().unwrap();
    let ctx = serrate::sql::session();
    for name in ["m", "names", "weights"] {
        let good = fs::read(format!("tests/data/tiny-dok/{name}.safetensors")).unwrap();
        for (i, (what, bytes)) in list_damages(&good).into_iter().enumerate() {
            let file = format!("{name}-{i}.safetensors");
            let path = dir.path().join(&file);
            fs::write(&path, bytes).unwrap();
            let create = format!(
                "CREATE EXTERNAL TABLE {name}{i} STORED AS DOK LOCATION '{}'",
                display_path(&path)
            );
            let statements = [create, format!("SELECT * FROM {name}{i}")];
            check_statements(&ctx, &format!("{name}: {what}"), &file, &statements).await;
        }
    }
}

#[tokio::test]
async fn damaged_meds_folders_are_errors() {
    let dir = TempDir::new().unwrap();
    let ctx = serrate::sql::session();
    let copied = ["data/train/0.parquet", "data/train/1.parquet", "metadata/codes.parquet"];
    for damaged in ["data/train/0.parquet", "metadata/codes.parquet"] {
        let good = fs::read(format!("tests/data/tiny-meds/{damaged}")).unwrap();
        for (i, (what, bytes)) in list_damages(&good).into_iter().enumerate() {
            let folder = format!("{}-{i}", damaged.replace(['/', '.'], "-"));
            let root = dir.path().join(&folder);
            for name in copied {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::copy(format!("tests/data/tiny-meds/{name}"), &path).unwrap();
            }
            fs::write(root.join(damaged), bytes).unwrap();
            let query = format!("SELECT * FROM meds('{}')", display_path(&root));
            check_statements(&ctx, &format!("{damaged}: {what}"), &folder, &[query]).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_while_it_is_read_is_an_error() {
    let dir = TempDir::new().unwrap();
    let ctx = serrate::sql::session();
    for ending in ["parquet", "csv", "ndjson"] {
        let path = |name: &str| dir.path().join(format!("{name}.{ending}"));
        for (name, first) in [("old", 1), ("new", 1000)] {
            let copy = format!(
                "COPY (SELECT value AS id, [value] AS x FROM generate_series({first}, 1100)) TO '{}'",
                display_path(&path(name))
            );
            serrate::sql::sql(&ctx, &copy).await.unwrap().collect().await.unwrap();
        }
        let query = format!("SELECT * FROM '{}'", display_path(&path("old")));
        let frame = serrate::sql::sql(&ctx, &query).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.unwrap();
        fs::rename(path("new"), path("old")).unwrap();
        let error = datafusion::physical_plan::collect(plan, task).await.unwrap_err().to_string();
        assert!(error.contains("was replaced or changed while it was read"), "{ending}: {error}");
        let rows = serrate::sql::sql(&ctx, &query).await.unwrap().count().await.unwrap();
        assert_eq!(rows, 101, "{ending}");
    }
}
