//! JSON, CSV and Arrow files: reading, and COPY, which leaves no file if it fails.

use serrate::io::json::{JsonForm, JsonWriteOptions, write_json, write_ndjson};

use super::*;

/// Returns the names of the files in a folder, including hidden files.
fn list_files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn json_is_read_as_an_array_and_as_lines() {
    let dir = tempfile::tempdir().unwrap();
    let table = make_numbered_table(1, 3);
    let records = JsonWriteOptions { form: JsonForm::Records, ..Default::default() };
    write_json(dir.path().join("list.json"), &table, &records).unwrap();
    for name in ["lines.json", "x.ndjson", "x.jsonl"] {
        write_ndjson(dir.path().join(name), &table, &records).unwrap();
    }
    let ctx = create_parallel_session();
    let expected = [
        "+----+----------------+",
        "| id | code           |",
        "+----+----------------+",
        "| 1  | [[10]]         |",
        "| 2  | [[20, 21]]     |",
        "| 3  | [[30, 31, 32]] |",
        "+----+----------------+",
    ];
    for name in ["list.json", "lines.json", "x.ndjson", "x.jsonl"] {
        let from = format!("'{}/{name}'", display_path(dir.path()));
        let whole = query_text(&ctx, &format!("SELECT id, code FROM {from} ORDER BY id")).await;
        assert_eq!(whole, expected.join("\n"), "{name}");
        assert_eq!(query_int(&ctx, &format!("SELECT count(*) FROM {from}")).await, 3, "{name}");
    }
    for (name, format) in [("list.json", "JSON"), ("x.ndjson", "NDJSON"), ("x.jsonl", "JSONL")] {
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t STORED AS {format} LOCATION '{}/{name}'",
            display_path(dir.path())
        );
        query_batches(&ctx, &create).await.unwrap();
        assert_eq!(query_int(&ctx, "SELECT sum(id) FROM t").await, 6, "{name}");
    }
    let e = error(&ctx, &format!("SELECT * FROM '{}/*.json'", display_path(dir.path()))).await;
    assert!(e.contains("list.json") && e.contains("lines.json"), "{e}");
    // A byte order mark and whitespace around the records are allowed, and so is a file without
    // records.
    std::fs::write(dir.path().join("odd.json"), "\u{feff} \n\t[{\"a\": 1}\n, {\"a\": 2} ]\n")
        .unwrap();
    let odd = format!("SELECT sum(a) FROM '{}/odd.json'", display_path(dir.path()));
    assert_eq!(query_int(&ctx, &odd).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_long_json_array_is_read_completely() {
    let dir = tempfile::tempdir().unwrap();
    let n = 60_000i64;
    let records: Vec<String> = (0..n).map(|i| format!("{{\"i\": {i}, \"x\": [{i}, 1]}}")).collect();
    for name in ["a.json", "b.json"] {
        std::fs::write(dir.path().join(name), format!("[{}]", records.join(",\n"))).unwrap();
    }
    assert!(std::fs::metadata(dir.path().join("a.json")).unwrap().len() > 1 << 20);
    let ctx = create_parallel_session();
    query_batches(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 1000").await.unwrap();
    for (from, times) in [("a.json", 1), ("*.json", 2)] {
        let sql = format!(
            "SELECT sum(x[1]) FROM '{}/{from}' WHERE i >= 0 AND x[2] = 1",
            display_path(dir.path())
        );
        assert_eq!(query_int(&ctx, &sql).await, times * n * (n - 1) / 2);
        let sql =
            format!("SELECT i FROM '{}/{from}' LIMIT 3 OFFSET 20000", display_path(dir.path()));
        assert_eq!(query_ints(&ctx, &sql).await, [20_000, 20_001, 20_002]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_that_fails_leaves_no_file_in_any_format() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let late = "SELECT i, 1 / (60000 - i) AS q FROM generate_series(1, 100000) AS t(i)";
    for extension in ["csv", "json", "ndjson", "jsonl", "arrow", "parquet"] {
        let path = dir.path().join(format!("new folder #1/x.{extension}"));
        let copy = format!("COPY ({late}) TO '{}'", display_path(&path));
        error(&ctx, &copy).await;
        assert!(!path.exists(), "{extension}");
        let folder = path.parent().unwrap();
        assert!(
            !folder.exists() || list_files(folder).is_empty(),
            "{extension}: {:?}",
            list_files(folder)
        );
        let copy = format!("COPY (SELECT 7 AS a) TO '{}'", display_path(&path));
        assert_eq!(query_int(&ctx, &copy).await, 1);
        assert_eq!(list_files(folder), [format!("x.{extension}")]);
        assert_eq!(
            query_int(&ctx, &format!("SELECT a FROM '{}'", display_path(&path))).await,
            7,
            "{extension}"
        );
        // COPY that DataFusion parses refuses the existing file, too.
        let e = stock_error(&ctx, &copy).await;
        assert!(e.contains("overwrite true"), "{extension}: {e}");
        let again =
            format!("COPY (SELECT 8 AS a) TO '{}' OPTIONS (overwrite true)", display_path(&path));
        query_batches(&ctx, &again).await.unwrap();
        assert_eq!(
            query_int(&ctx, &format!("SELECT a FROM '{}'", display_path(&path))).await,
            8,
            "{extension}"
        );
        std::fs::remove_file(&path).unwrap();
    }
    // COPY to a folder, and options of a format, are passed to DataFusion.
    let sql = format!("COPY (SELECT 1 AS a) TO '{}/out/' STORED AS CSV", display_path(dir.path()));
    query_batches(&ctx, &sql).await.unwrap();
    assert_eq!(list_files(&dir.path().join("out")).len(), 1);
    let sql = format!(
        "COPY (SELECT 1 AS a, 2 AS b) TO '{}/x.csv' OPTIONS (has_header false, overwrite true)",
        display_path(dir.path())
    );
    query_batches(&ctx, &sql).await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("x.csv")).unwrap(), "1,2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_copy_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    // A small buffer flushes the first batches early, so that some copies are dropped before the
    // file exists, and some after.
    query_batches(&ctx, "SET datafusion.execution.objectstore_writer_buffer_size = 1000")
        .await
        .unwrap();
    let endless = "SELECT a.i AS i FROM generate_series(1, 100000) AS a(i), generate_series(1, 100000) AS b(i)";
    for millis in (0..60).step_by(3).chain([300]) {
        for extension in ["csv", "json", "arrow"] {
            let copy = format!("COPY ({endless}) TO '{}/x.{extension}'", display_path(dir.path()));
            let run = query_batches(&ctx, &copy);
            let cut = tokio::time::timeout(std::time::Duration::from_millis(millis), run).await;
            assert!(cut.is_err(), "{extension}");
        }
    }
    for _ in 0..600 {
        if list_files(dir.path()).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{:?}", list_files(dir.path()));
}

#[tokio::test]
async fn empty_files_of_formats_with_a_header_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for extension in ["nrt", "parquet", "arrow"] {
        let empty = dir.path().join(format!("empty.{extension}"));
        std::fs::write(&empty, "").unwrap();
        let whole = dir.path().join(format!("whole.{extension}"));
        query_batches(&ctx, &format!("COPY (SELECT 1 AS a) TO '{}'", display_path(&whole)))
            .await
            .unwrap();
        for from in [display_path(&empty), format!("{}/*.{extension}", display_path(dir.path()))] {
            let e = error(&ctx, &format!("SELECT count(*) FROM '{from}'")).await;
            assert!(e.contains(&display_path(&empty)) && e.contains("0 bytes"), "{e}");
        }
        for location in [display_path(&empty), format!("{}/", display_path(dir.path()))] {
            let sql =
                format!("CREATE EXTERNAL TABLE t STORED AS {extension} LOCATION '{location}'");
            let e = error(&ctx, &sql).await;
            assert!(e.contains(&display_path(&empty)), "{e}");
        }
        std::fs::remove_file(empty).unwrap();
        assert_eq!(query_int(&ctx, &format!("SELECT a FROM '{}'", display_path(&whole))).await, 1);
        std::fs::remove_file(whole).unwrap();
    }
}

#[tokio::test]
async fn folders_of_several_formats_are_refused() {
    let ctx = create_parallel_session();
    for folder in ["tests/data/synthea-meds", "tests/data/synthea-meds-torch-data"] {
        let e = query_batches(&ctx, &format!("SELECT count(*) FROM '{folder}'"))
            .await
            .unwrap_err()
            .to_string();
        assert!(e.contains("files of several formats") && e.contains("meds('"), "{e}");
    }
    // A folder whose subfolders hold one format, and a glob that matches one of several formats,
    // are read.
    assert_eq!(
        query_int(&ctx, "SELECT count(*) FROM 'tests/data/synthea-meds/data'").await,
        24_866
    );
    let glob = "SELECT count(*) FROM 'tests/data/synthea-meds/metadata/*.parquet'";
    assert!(query_batches(&ctx, glob).await.is_ok());
}

/// Programs such as `cp -p` and `rsync -t` give a new version of a file the time of another one.
#[tokio::test]
async fn versions_of_a_file_with_the_same_size_and_time_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let set_time = |path: &Path| {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    let version = |k: i32| dir.path().join(format!("version{k}.parquet"));
    for k in [1, 2] {
        let path = display_path(&version(k));
        query_batches(&ctx, &format!("COPY (SELECT {k} AS k) TO '{path}'")).await.unwrap();
    }
    let sizes = [1, 2].map(|k| std::fs::metadata(version(k)).unwrap().len());
    assert_eq!(sizes[0], sizes[1]);
    let path = dir.path().join("t.parquet");
    std::fs::copy(version(1), &path).unwrap();
    set_time(&path);
    let shown = display_path(&path);
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{shown}'");
    query_batches(&ctx, &table).await.unwrap();
    for (k, replaces) in [(1, true), (2, true), (1, false), (2, false), (1, true)] {
        match replaces {
            true => {
                let copy = dir.path().join("copy.parquet");
                std::fs::copy(version(k), &copy).unwrap();
                set_time(&copy);
                std::fs::rename(&copy, &path).unwrap();
            }
            false => {
                std::fs::write(&path, std::fs::read(version(k)).unwrap()).unwrap();
                set_time(&path);
            }
        }
        for from in ["t", &format!("'{shown}'")] {
            let found = query_texts(&ctx, &format!("SELECT max(k) FROM {from}")).await;
            assert_eq!(found, [k.to_string()], "{from}, replaced: {replaces}");
            let found =
                query_int(&ctx, &format!("SELECT count(*) FROM {from} WHERE k = {k}")).await;
            assert_eq!(found, 1, "{from}, replaced: {replaces}");
        }
    }
}
