//! The files that a folder or a glob pattern stands for, and columns from `key=value` folders.

use super::*;

/// Writes the rows of each query as Parquet to its path below `dir`.
async fn write_files(ctx: &SessionContext, dir: &Path, files: &[(&str, &str)]) {
    for (path, query) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let whole = dir.join("whole.parquet");
        query_lines(
            ctx,
            &format!("COPY ({query}) TO '{}' OPTIONS (overwrite true)", display_path(&whole)),
        )
        .await;
        std::fs::rename(whole, path).unwrap();
    }
}

#[tokio::test]
async fn hive_folders_are_columns_with_null() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("k=1/a.parquet", "SELECT 10 AS x"),
        ("k=02/a.parquet", "SELECT 20 AS x"),
        ("k=a%20b/a.parquet", "SELECT 30 AS x"),
        ("k=__HIVE_DEFAULT_PARTITION__/a.parquet", "SELECT 40 AS x"),
    ];
    write_files(&ctx, dir.path(), &files).await;
    let t = format!("'{}/'", display_path(dir.path()));
    for (query, expected) in [
        ("SELECT x, k FROM t ORDER BY x", "10,1 20,02 30,a b 40,"),
        ("SELECT count(k), count(*), min(k), max(k) FROM t", "3,4,02,a b"),
        ("SELECT x FROM t WHERE k IS NULL", "40"),
        ("SELECT x FROM t WHERE k <> '1' ORDER BY x", "20 30"),
        ("SELECT x FROM t WHERE NOT (k = '1') ORDER BY x", "20 30"),
        ("SELECT x FROM t WHERE k IS DISTINCT FROM '1' ORDER BY x", "20 30 40"),
        ("SELECT x FROM t WHERE k NOT IN ('1', '02')", "30"),
        ("SELECT count(*) FROM t GROUP BY k IS NULL ORDER BY 1", "1 3"),
        ("SELECT a.x FROM t a JOIN t b ON a.k = b.k ORDER BY 1", "10 20 30"),
        ("SELECT x FROM t ORDER BY k NULLS FIRST, x LIMIT 2", "40 20"),
    ] {
        let sql =
            query.replace("FROM t", &format!("FROM {t}")).replace("JOIN t", &format!("JOIN {t}"));
        assert_eq!(query_lines(&ctx, &sql).await.join(" "), expected, "{sql}");
    }
    std::fs::remove_dir_all(dir.path().join("k=a%20b")).unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE typed (x INT, k INT) STORED AS PARQUET PARTITIONED BY (k) LOCATION {t}"
    );
    query_lines(&ctx, &create).await;
    for (query, expected) in [
        ("SELECT x, k FROM typed ORDER BY x", "10,1 20,2 40,"),
        ("SELECT x FROM typed WHERE k = 2", "20"),
        ("SELECT x FROM typed WHERE k + 1 > 2 OR k IS NULL ORDER BY x", "20 40"),
        ("SELECT sum(k), count(k) FROM typed", "3,2"),
    ] {
        assert_eq!(query_lines(&ctx, query).await.join(" "), expected, "{query}");
    }
    query_lines(&ctx, "INSERT INTO typed VALUES (50, 7)").await;
    assert_eq!(query_lines(&ctx, "SELECT x FROM typed WHERE k = 7").await, ["50"]);
    write_files(&ctx, dir.path(), &[("k=z/a.parquet", "SELECT 1::INT AS x")]).await;
    let e = error(&ctx, "SELECT * FROM typed").await;
    assert!(e.contains("k=z") && e.contains("Int32"), "{e}");
}

#[tokio::test]
async fn extremes_omit_hive_folders_without_rows() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("k=1/a.parquet", "SELECT 10 AS x WHERE false"),
        ("k=2/a.parquet", "SELECT 20 AS x"),
        ("k=3/a.parquet", "SELECT 30 AS x"),
        ("k=4/a.parquet", "SELECT 40 AS x WHERE false"),
    ];
    write_files(&ctx, dir.path(), &files).await;
    let t = format!("'{}/'", display_path(dir.path()));
    for (columns, expected) in [
        ("min(k)", "2"),
        ("max(k)", "3"),
        ("count(k)", "2"),
        ("min(k), max(x), count(*)", "2,30,2"),
    ] {
        let sql = format!("SELECT {columns} FROM {t}");
        assert_eq!(query_lines(&ctx, &sql).await, [expected], "{sql}");
    }
}

#[tokio::test]
async fn hive_folders_may_be_nested_and_must_have_the_same_columns() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("s/k=1/a.parquet", "SELECT 1 AS x"),
        ("s/k=2/t/a.parquet", "SELECT 2 AS x"),
        ("k=3/a.parquet", "SELECT 3 AS x"),
    ];
    write_files(&ctx, dir.path(), &files).await;
    let at = display_path(dir.path());
    for from in [format!("{at}/"), format!("{at}/**/*.parquet")] {
        let sql = format!("SELECT x, k FROM '{from}' ORDER BY x");
        assert_eq!(query_lines(&ctx, &sql).await, ["1,1", "2,2", "3,3"], "{from}");
    }
    write_files(&ctx, dir.path(), &[("j=3/a.parquet", "SELECT 3 AS x")]).await;
    let e = error(&ctx, &format!("FROM '{at}/'")).await;
    assert!(e.contains("folders (name=value) of different columns") && e.contains("j=3"), "{e}");
    let create = format!(
        "CREATE EXTERNAL TABLE t (x BIGINT, k TEXT) STORED AS PARQUET PARTITIONED BY (k) LOCATION '{at}/'"
    );
    let e = error(&ctx, &create).await;
    assert!(e.contains("not in a folder 'k=..'") && e.contains("j=3"), "{e}");
}

#[tokio::test]
async fn hive_values_replace_a_column_of_the_file() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    write_files(&ctx, dir.path(), &[("k=1/a.parquet", "SELECT 9 AS k, 5 AS x")]).await;
    let sql = format!("SELECT x, k + 1 FROM '{}/'", display_path(dir.path()));
    assert_eq!(query_lines(&ctx, &sql).await, ["5,2"]);
}

#[tokio::test]
async fn patterns_match_within_one_path_segment() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("a.parquet", "SELECT 1 AS x"),
        ("s/b.parquet", "SELECT 2 AS x"),
        ("s/u/c.parquet", "SELECT 3 AS x"),
        ("k=1/d.parquet", "SELECT 4 AS x"),
    ];
    write_files(&ctx, dir.path(), &files).await;
    for (pattern, expected) in [
        ("*.parquet", "1"),
        ("?.parquet", "1"),
        ("s/*.parquet", "2"),
        ("*/*.parquet", "2 4"),
        ("k=*/*.parquet", "4"),
        ("k=1/*.parquet", "4"),
        ("s/**/*.parquet", "2 3"),
        ("[as]/*/c.parquet", "3"),
    ] {
        let table = format!("'{}/{pattern}'", display_path(dir.path()));
        let sql = format!("SELECT x FROM {table} ORDER BY x");
        if pattern == "*/*.parquet" {
            let e = error(&ctx, &sql).await;
            assert!(e.contains("folders (name=value) of different columns"), "{e}");
            continue;
        }
        assert_eq!(query_lines(&ctx, &sql).await.join(" "), expected, "{pattern}");
        let create =
            format!("CREATE OR REPLACE EXTERNAL TABLE t STORED AS PARQUET LOCATION {table}");
        query_lines(&ctx, &create).await;
        let sql = "SELECT x FROM t ORDER BY x";
        assert_eq!(query_lines(&ctx, sql).await.join(" "), expected, "{pattern}");
        let sql = format!("SELECT x FROM read_parquet({table}) ORDER BY x");
        assert_eq!(query_lines(&ctx, &sql).await.join(" "), expected, "{pattern}");
    }
    let e = error(&ctx, &format!("FROM '{}/u/*.parquet'", display_path(dir.path()))).await;
    assert!(e.contains("no file matches the pattern"), "{e}");
}

#[tokio::test]
async fn folders_with_compressed_or_mixed_files_are_refused() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let files = [("a.parquet", "SELECT 1 AS x"), ("B.PARQUET", "SELECT 2 AS x")];
    write_files(&ctx, dir.path(), &files).await;
    std::fs::write(dir.path().join("README.md"), "text").unwrap();
    let create = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{at}/'");
    query_lines(&ctx, &create).await;
    for from in [format!("'{at}/'"), format!("read_parquet('{at}/')"), "p".into()] {
        let sql = format!("SELECT x FROM {from} ORDER BY x");
        assert_eq!(query_lines(&ctx, &sql).await, ["1", "2"], "{from}");
    }
    let e = error(&ctx, &format!("FROM '{at}/*'")).await;
    assert!(e.contains("several formats") && e.contains("README.md"), "{e}");

    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    std::fs::write(dir.path().join("a.csv"), "x\n1\n").unwrap();
    std::fs::write(dir.path().join("b.csv.gz"), [0x1f, 0x8b]).unwrap();
    for from in [format!("'{at}/'"), format!("'{at}/*'"), format!("read_csv('{at}/')")] {
        let e = error(&ctx, &format!("FROM {from}")).await;
        assert!(e.contains("a.csv") && e.contains("b.csv.gz"), "{e}");
    }
    let create = format!("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{at}/'");
    assert!(error(&ctx, &create).await.contains("b.csv.gz"));
    let both = format!("FROM read_csv(['{at}/a.csv', '{at}/b.csv.gz'])");
    assert!(error(&ctx, &both).await.contains("different compressions"));
    std::fs::remove_file(dir.path().join("a.csv")).unwrap();
    for from in [format!("'{at}/'"), format!("read_csv('{at}/b.csv.gz')")] {
        let e = error(&ctx, &format!("SELECT x FROM {from}")).await;
        assert!(e.contains("compressed") && e.contains("decompress"), "{e}");
    }
    let e = error(&ctx, &create).await;
    assert!(e.contains("compressed") && e.contains("decompress"), "{e}");
}

#[tokio::test]
async fn lists_of_files_have_the_columns_of_all_files() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("0.parquet", "SELECT 3 AS x"),
        ("1.parquet", "SELECT 1 AS x, 10 AS y UNION ALL SELECT 2, 20"),
        ("2.parquet", "SELECT 1.5::DOUBLE AS x"),
    ];
    write_files(&ctx, dir.path(), &files).await;
    let at = display_path(dir.path());
    let list = format!("read_parquet(['{at}/0.parquet', '{at}/1.parquet'])");
    let sql = format!("SELECT x, y FROM {list} ORDER BY x");
    assert_eq!(query_lines(&ctx, &sql).await, ["1,10", "2,20", "3,"]);
    let list = format!("read_parquet(['{at}/0.parquet', '{at}/2.parquet'])");
    for from in [list, format!("'{at}/*.parquet'")] {
        let e = error(&ctx, &format!("FROM {from}")).await;
        for part in ["column 'x'", "Int64", "Float64", "0.parquet", "2.parquet"] {
            assert!(e.contains(part), "{part}: {e}");
        }
    }
}

#[tokio::test]
async fn tables_of_folders_read_new_files() {
    let ctx = create_parallel_session();
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    write_files(&ctx, dir.path(), &[("a.parquet", "SELECT 1 AS x")]).await;
    query_lines(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'")).await;
    assert_eq!(query_lines(&ctx, "SELECT count(*) FROM t").await, ["1"]);
    write_files(&ctx, dir.path(), &[("b.parquet", "SELECT 2 AS x")]).await;
    assert_eq!(query_lines(&ctx, "SELECT count(*) FROM t").await, ["2"]);
    std::fs::remove_file(dir.path().join("a.parquet")).unwrap();
    assert_eq!(query_lines(&ctx, "SELECT x FROM t").await, ["2"]);
}

/// When this test fails, `sql::sources::listing` need not read the names of folders itself.
#[tokio::test]
async fn stock_listings_still_omit_files() {
    let ctx = create_parallel_session();
    let null = "k=__HIVE_DEFAULT_PARTITION__/a.parquet";
    for (files, sql) in [
        (vec![("s/k=1/a.parquet", "SELECT 1 AS x")], "SELECT count(*) FROM t"),
        (vec![(null, "SELECT 1 AS x")], "SELECT count(*) FROM t WHERE k IS NULL"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write_files(&ctx, dir.path(), &files).await;
        let stock = SessionContext::new();
        let create = format!(
            "CREATE EXTERNAL TABLE t (x BIGINT, k TEXT) STORED AS PARQUET PARTITIONED BY (k) LOCATION '{}/'",
            display_path(dir.path())
        );
        stock_batches(&stock, &create).await.unwrap();
        assert_eq!(stock_one(&stock, sql).await, 0, "{sql}");
    }
}

fn write_text(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn part_files_without_an_extension_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    for (name, text) in [
        ("d/part-00000", "x\n1\n2\n"),
        ("d/README", "no data\n"),
        ("un/part-00000", "x\n1\n"),
        ("un/000001_0", "x\n2\n"),
        ("un/part-0.c000", "x\n4\n"),
        ("un/part-00001-1f0c-4a5b-c000", "x\n8\n"),
        ("un/extra.csv", "x\n16\n"),
        ("un/LICENSE", "no data\n"),
        ("tsv/a.tsv", "x\n1\n"),
        ("tsv/LICENSE", "x\n1\n"),
        ("plain/data", "x\n1\n"),
    ] {
        write_text(dir.path(), name, text);
    }
    query_lines(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{at}/d/'")).await;
    assert_eq!(query_lines(&ctx, "SELECT count(*) FROM t").await, ["2"]);
    query_lines(&ctx, "INSERT INTO t VALUES (3)").await;
    assert_eq!(query_lines(&ctx, "SELECT count(*), sum(x) FROM t").await, ["3,6"]);
    for from in [format!("read_csv('{at}/un/')"), format!("'{at}/un/'")] {
        assert_eq!(
            query_lines(&ctx, &format!("SELECT sum(x) FROM {from}")).await,
            ["31"],
            "{from}"
        );
    }
    let e = error(&ctx, &format!("SELECT * FROM read_csv('{at}/tsv/')")).await;
    assert!(e.contains("does not exist") || e.contains("no file"), "{e}");
    // A file without an extension that is not named as a part of a table is read only if the folder
    // has no other file, so INSERT, which would add one, is refused.
    query_lines(&ctx, &format!("CREATE EXTERNAL TABLE p STORED AS CSV LOCATION '{at}/plain/'"))
        .await;
    assert_eq!(query_lines(&ctx, "SELECT count(*) FROM p").await, ["1"]);
    let e = error(&ctx, "INSERT INTO p VALUES (3)").await;
    assert!(e.contains("plain/data") && e.contains("rename"), "{e}");
}

#[tokio::test]
async fn a_file_that_was_truncated_to_zero_bytes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    for extension in ["parquet", "arrow", "nrt"] {
        let files = format!("{at}/{extension}");
        for file in ["0", "1"] {
            let copy = format!("COPY (SELECT {file} AS x) TO '{files}/{file}.{extension}'");
            query_lines(&ctx, &copy).await;
        }
        let create =
            format!("CREATE OR REPLACE EXTERNAL TABLE t STORED AS {extension} LOCATION '{files}/'");
        query_lines(&ctx, &create).await;
        assert_eq!(query_lines(&ctx, "SELECT count(*) FROM t").await, ["2"]);
        std::fs::write(dir.path().join(extension).join(format!("1.{extension}")), "").unwrap();
        let e = error(&ctx, "SELECT count(*) FROM t").await;
        assert!(e.contains("0 bytes") && e.contains("1."), "{e}");
    }
}

#[tokio::test]
async fn hive_values_are_not_rounded() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    for (folder, column) in
        [("k=1.5", "DECIMAL(3, 0)"), ("k=2020-01-01T12:00:00", "DATE"), ("k=1.5", "INT")]
    {
        let at = format!("{}/{}", display_path(dir.path()), column.replace(' ', ""));
        query_lines(&ctx, &format!("COPY (SELECT 1 AS x) TO '{at}/{folder}/a.parquet'")).await;
        let create = format!(
            "CREATE EXTERNAL TABLE t (x INT, k {column}) STORED AS PARQUET PARTITIONED BY (k) LOCATION '{at}/'"
        );
        let e = error(&ctx, &create).await;
        assert!(e.contains(folder), "{e}");
    }
}

#[tokio::test]
async fn declared_hive_columns_replace_columns_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    let copy = format!(
        "COPY (SELECT 1 AS x, 2 AS \"k/l\") TO '{at}/' STORED AS PARQUET PARTITIONED BY (\"k/l\") OPTIONS (execution.keep_partition_by_columns true)"
    );
    query_lines(&ctx, &copy).await;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/'");
    query_lines(&ctx, &create).await;
    for from in ["t".to_owned(), format!("'{at}/'")] {
        let sql = format!("SELECT x, \"k/l\", arrow_typeof(\"k/l\") FROM {from} WHERE \"k/l\" = 2");
        assert_eq!(query_lines(&ctx, &sql).await, ["1,2,Int64"], "{sql}");
    }
}

#[tokio::test]
async fn lists_of_paths_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    for (name, x) in [("la", 1), ("lb", 2), ("lc", 3)] {
        query_lines(
            &create_parallel_session(),
            &format!("COPY (SELECT {x} AS x) TO '{at}/{name}.parquet'"),
        )
        .await;
    }
    for partitions in [1, 2, 8] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let ctx = serrate::sql::session_with(config);
        let from =
            format!("read_parquet(['{at}/lb.parquet', '{at}/la.parquet', '{at}/lc.parquet'])");
        assert_eq!(query_lines(&ctx, &format!("SELECT x FROM {from} LIMIT 1")).await, ["2"]);
        assert_eq!(query_lines(&ctx, &format!("SELECT x FROM {from} LIMIT 2")).await, ["2", "1"]);
    }
}

#[tokio::test]
async fn create_table_ignores_a_folder_of_the_same_name() {
    // Tests run in the folder of the package, whose folder `docs` has the name of the table.
    let ctx = create_parallel_session();
    query_lines(&ctx, "CREATE TABLE IF NOT EXISTS docs AS SELECT 1 AS y").await;
    assert_eq!(query_lines(&ctx, "SELECT y FROM docs").await, ["1"]);
    assert!(error(&ctx, "CREATE TABLE docs AS SELECT 2 AS y").await.contains("already exists"));
    query_lines(&ctx, "CREATE TABLE IF NOT EXISTS docs AS SELECT 2 AS y").await;
    assert_eq!(query_lines(&ctx, "SELECT y FROM docs").await, ["1"]);
    query_lines(&ctx, "CREATE VIEW benches AS SELECT 3 AS y").await;
    assert_eq!(query_lines(&ctx, "SELECT y FROM benches").await, ["3"]);
    query_lines(&ctx, "DROP TABLE docs").await;
    query_lines(&ctx, "CREATE TABLE docs AS SELECT 4 AS y").await;
    assert_eq!(query_lines(&ctx, "SELECT y FROM docs").await, ["4"]);
}

#[tokio::test]
async fn brackets_in_existing_paths_are_not_patterns() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    write_text(dir.path(), "br[1]/1.csv", "x\n1\n");
    write_text(dir.path(), "br[1]/a[2].csv", "x\n2\n");
    write_text(dir.path(), "c1.csv", "x\n3\n");
    let ctx = create_parallel_session();
    for (from, expected) in [
        (format!("'{at}/br[1]/1.csv'"), "1"),
        (format!("'{at}/br[1]/a[2].csv'"), "2"),
        (format!("'{at}/br[1]/'"), "3"),
        (format!("read_csv('{at}/br[1]/')"), "3"),
        (format!("'{at}/c[12].csv'"), "3"),
    ] {
        assert_eq!(
            query_lines(&ctx, &format!("SELECT sum(x) FROM {from}")).await,
            [expected],
            "{from}"
        );
    }
    let create = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{at}/br[1]/'");
    query_lines(&ctx, &create).await;
    assert_eq!(query_lines(&ctx, "SELECT sum(x) FROM t").await, ["3"]);
}

#[tokio::test]
async fn insert_into_a_table_of_one_file_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    query_lines(&ctx, &format!("COPY (SELECT 1 AS x) TO '{at}/a.nrt'")).await;
    query_lines(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS NRT LOCATION '{at}/'")).await;
    let e = error(&ctx, "INSERT INTO t VALUES (2)").await;
    assert!(e.contains("INSERT is not supported for NRT") && e.contains("COPY"), "{e}");
}

#[tokio::test]
async fn insert_into_a_pattern_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = display_path(dir.path());
    let ctx = create_parallel_session();
    query_lines(&ctx, &format!("COPY (SELECT 1 AS x) TO '{at}/a1.parquet'")).await;
    for pattern in ["a*.parquet", "*.parquet"] {
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{at}/{pattern}'"
        );
        query_lines(&ctx, &create).await;
        let e = error(&ctx, "INSERT INTO t VALUES (2)").await;
        assert!(e.contains(&format!("{pattern}' is a pattern")), "{e}");
        assert_eq!(query_lines(&ctx, "SELECT x FROM t").await, ["1"]);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Planning keeps what it has read of a `.nrt` file for later statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_changed_nrt_file_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let path = |name: &str| dir.path().join(name);
    for (name, query) in [
        ("one.nrt", "SELECT 1 AS x, [1, 2] AS code"),
        ("two.nrt", "SELECT * FROM (VALUES (5, 1.5), (6, 2.5)) v(y, z)"),
    ] {
        let copy = format!("COPY ({query}) TO '{}'", display_path(&path(name)));
        query_batches(&ctx, &copy).await.unwrap();
    }
    let select = |name: &str| format!("SELECT * FROM '{}' ORDER BY 1", display_path(&path(name)));
    let count = |name: &str| format!("SELECT count(*) FROM '{}'", display_path(&path(name)));
    for milliseconds in [0, 0, 1, 20, 0, 20] {
        for name in ["one.nrt", "two.nrt"] {
            std::fs::copy(path(name), path("t.nrt")).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(milliseconds));
            for _ in 0..2 {
                let found = query_int(&ctx, &count("t.nrt")).await;
                assert_eq!(found, query_int(&ctx, &count(name)).await, "{name}");
                let found = query_text(&ctx, &select("t.nrt")).await;
                assert_eq!(found, query_text(&ctx, &select(name)).await, "{name}");
            }
        }
    }
}

/// A pipe has no size, so its rows would be missing, and no second end, so its reader would wait.
#[cfg(unix)]
#[tokio::test]
async fn pipes_and_devices_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let pipe = dir.path().join("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = display_path(&pipe);
    for sql in [
        "SELECT * FROM read_csv('/dev/null')".to_owned(),
        "SELECT count(*) FROM read_parquet('/dev/null')".to_owned(),
        format!("SELECT * FROM '{pipe}'"),
        format!("SELECT * FROM read_json('{pipe}')"),
        format!("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{pipe}'"),
    ] {
        let e = error(&ctx, &sql).await;
        assert!(e.contains("is a pipe or a device"), "{sql}: {e}");
    }
}

#[tokio::test]
async fn missing_files_have_their_full_path_and_partitions_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let at = display_path(dir.path());
    let create = format!("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{at}/no.csv'");
    query_batches(&ctx, &create).await.unwrap();
    let e = error(&ctx, "SELECT * FROM t").await;
    assert!(e.contains(&format!("{at}/no.csv: the file does not exist")), "{e}");
    let create = format!(
        "CREATE EXTERNAL TABLE u (a INT, p INT) STORED AS CSV PARTITIONED BY (p, p) LOCATION '{at}/'"
    );
    let e = error(&ctx, &create).await;
    assert!(e.contains("PARTITIONED BY names the column 'p' twice"), "{e}");
}

/// An object store omits such links, so that rows would be missing silently.
#[cfg(unix)]
#[tokio::test]
async fn links_to_missing_files_are_refused() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let at = display_path(dir.path());
    std::fs::create_dir(dir.path().join("k=1")).unwrap();
    std::fs::write(dir.path().join("k=1/a.csv"), "x\n1\n").unwrap();
    let create =
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{at}/' OPTIONS (has_header true)");
    query_batches(&ctx, &create).await.unwrap();
    // Links that no table would read.
    for name in ["k=1/.hidden.csv", "k=1/README.md", "_old"] {
        symlink(dir.path().join("gone"), dir.path().join(name)).unwrap();
    }
    let statements = [
        format!("SELECT x FROM '{at}/'"),
        format!("SELECT x FROM '{at}/k=1/*.csv'"),
        format!("SELECT x FROM read_csv('{at}/')"),
        "SELECT x FROM t".to_owned(),
    ];
    for sql in &statements {
        assert_eq!(rows_or_error(&ctx, sql).await, "1", "{sql}");
    }
    symlink(dir.path().join("gone"), dir.path().join("k=1/b.csv")).unwrap();
    for sql in &statements {
        let e = error(&ctx, sql).await;
        assert!(e.contains("k=1/b.csv is a symbolic link to a missing file"), "{sql}: {e}");
    }
    // Once the target is there, its rows are, too.
    std::fs::write(dir.path().join("gone"), "x\n2\n").unwrap();
    assert_eq!(rows_or_error(&ctx, "SELECT sum(x) FROM t").await, "3");
    // A partition may be a link to a folder.
    symlink(dir.path().join("gone_folder"), dir.path().join("k=2")).unwrap();
    let e = error(&ctx, "SELECT sum(x) FROM t").await;
    assert!(e.contains("k=2 is a symbolic link to a missing file"), "{e}");
    for pattern in ["k=*/a.csv", "*/a.csv", "**/a.csv", "k=[12]/*.csv"] {
        let e = error(&ctx, &format!("SELECT x FROM '{at}/{pattern}'")).await;
        assert!(e.contains("k=2 is a symbolic link to a missing file"), "{pattern}: {e}");
    }
    // The link does not match these patterns.
    for pattern in ["k=1/*.csv", "k=[13]/a.csv", "*1/a.csv"] {
        let sql = format!("SELECT x FROM '{at}/{pattern}' WHERE x = 1");
        assert_eq!(rows_or_error(&ctx, &sql).await, "1", "{pattern}");
    }
    std::fs::create_dir(dir.path().join("gone_folder")).unwrap();
    assert_eq!(rows_or_error(&ctx, "SELECT sum(x) FROM t").await, "3");
}

/// An object store omits pipes, so that rows would be missing silently.
#[cfg(unix)]
#[tokio::test]
async fn pipes_in_folders_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = create_parallel_session();
    let at = display_path(dir.path());
    std::fs::write(dir.path().join("a.csv"), "x\n1\n").unwrap();
    let make_pipe = |name: &str| {
        let pipe = dir.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    };
    let statements = [format!("SELECT x FROM '{at}/'"), format!("SELECT x FROM '{at}/*.csv'")];
    // Pipes that no table would read.
    for name in [".b.csv", "b.sock", "_b"] {
        make_pipe(name);
    }
    for sql in &statements {
        assert_eq!(rows_or_error(&ctx, sql).await, "1", "{sql}");
    }
    make_pipe("b.csv");
    for sql in &statements {
        let e = error(&ctx, sql).await;
        assert!(e.contains("b.csv is a pipe or a device"), "{sql}: {e}");
    }
}
