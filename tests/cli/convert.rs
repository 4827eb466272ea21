//! `serrate convert`, `densify` and `generate`.

use super::*;

#[test]
fn conversions_keep_every_value_through_every_format() {
    let place = Place::new();
    place.patients("x.nrt");
    let original = place.nrt("x.nrt");
    for middle in ["m.parquet", "m.arrow", "m.feather", "m.ndjson", "m.jsonl", "m.json"] {
        let out = place.ok(&["convert", "x.nrt", middle]);
        assert_eq!(out, format!("wrote 3 rows to {middle}\n"));
        place.ok(&["convert", middle, "back.nrt", "--overwrite"]);
        let back = place.nrt("back.nrt");
        assert_eq!(back.num_rows(), 3, "{middle}");
        for axis in 1..3 {
            assert_eq!(back.layout(axis).unwrap(), original.layout(axis).unwrap(), "{middle}");
        }
        assert_eq!(back.array("code").unwrap().leaves().len(), 5);
        let t = back.column("t").unwrap().values().clone();
        let t = cast(&t, &DataType::Float32).unwrap();
        let t = t.as_primitive::<Float32Type>().clone();
        assert!(t.value(0).is_nan() && t.value(1) == 1.5, "{middle}");
        if !middle.contains("json") {
            assert!(
                fs::read(place.path("x.nrt")).unwrap() == fs::read(place.path("back.nrt")).unwrap()
            );
        }
    }
}

#[test]
fn a_folder_converts_to_a_folder_or_to_one_file_in_the_order_of_its_shards() {
    let place = Place::new();
    let shard = |name: &str, codes: Arc<dyn Array>| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let rows = codes.len();
        let table = RaggedTable::builder()
            .lengths(vec![1; rows])
            .unwrap()
            .column("code", 1, codes)
            .build()
            .unwrap();
        nrt::write(path, &table, &WriteOptions::default()).unwrap();
    };
    shard("in/train/2.nrt", Arc::new(UInt16Array::from(vec![300, 2])));
    shard("in/train/10.nrt", Arc::new(UInt8Array::from(vec![10])));
    shard("in/a.nrt", Arc::new(UInt8Array::from(vec![1])));
    fs::create_dir(place.path("in/metadata")).unwrap();
    fs::write(place.path("in/metadata/codes.parquet"), "not read").unwrap();

    assert_eq!(place.ok(&["convert", "in", "all.nrt"]), "wrote 4 rows to all.nrt\n");
    let all = place.nrt("all.nrt");
    let codes = all.column("code").unwrap().values().clone();
    assert_eq!(codes.as_primitive::<UInt16Type>().values(), &[1, 300, 2, 10]);

    let out = place.ok(&["convert", "in", "out", "--to", "parquet"]);
    assert_eq!(out, "wrote 4 rows to 3 files in out\n");
    for name in ["out/a.parquet", "out/train/2.parquet", "out/train/10.parquet"] {
        assert!(place.exists(name), "{name}");
    }
    // All shards get the smallest integer type that holds the values of every shard.
    let types = place.ok(&["inspect", "out/a.parquet"]);
    assert!(types.contains("UInt16"), "{types}");
    let err = place.fails(2, &["convert", "in", "out2"]);
    assert!(err.contains("--to"), "{err}");
    let err = place.fails(1, &["convert", "in", "out", "--to", "parquet"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["convert", "in", "out", "--to", "parquet", "--force"]);

    shard("other/b.nrt", Arc::new(UInt8Array::from(vec![1])));
    fs::write(place.path("other/c.ndjson"), "{\"code\": [1]}\n").unwrap();
    let err = place.fails(1, &["convert", "other", "o.nrt"]);
    assert!(err.contains("several formats"), "{err}");
}

#[test]
fn shards_whose_columns_differ_are_refused_by_name() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.file("in/1.ndjson", "{\"a\": [1]}\n").file("in/2.ndjson", "{\"b\": [1]}\n");
    let err = place.fails(1, &["convert", "in", "x.nrt"]);
    assert!(err.contains("2.ndjson") && err.contains("\"a\""), "{err}");
    assert!(!place.exists("x.nrt"));
    place.file("in/2.ndjson", "{\"a\": [\"text\"]}\n");
    let err = place.fails(1, &["convert", "in", "x.nrt"]);
    assert!(err.contains("2.ndjson") && err.contains("\"a\""), "{err}");
}

#[test]
fn files_are_overwritten_only_with_overwrite() {
    let place = Place::new();
    place.patients("x.nrt").file("y.parquet", "precious").file("z.safetensors", "precious");
    place.file("g.nrt", "precious");
    for args in [
        &["convert", "x.nrt", "y.parquet"][..],
        &["convert", "x.nrt", "z.safetensors"],
        &["densify", "x.nrt", "-o", "z.safetensors"],
        &["generate", "--patients", "2", "-o", "g.nrt"],
    ] {
        let err = place.fails(1, args);
        assert!(err.contains("exists"), "{err}");
    }
    for name in ["y.parquet", "z.safetensors", "g.nrt"] {
        assert_eq!(fs::read(place.path(name)).unwrap(), b"precious");
    }
    place.ok(&["convert", "x.nrt", "y.parquet", "--overwrite"]);
    place.ok(&["densify", "x.nrt", "-o", "z.safetensors", "--overwrite"]);
    place.ok(&["generate", "--patients", "2", "-o", "g.nrt", "--overwrite"]);
    let err = place.fails(1, &["convert", "x.nrt", "./x.nrt", "--overwrite"]);
    assert!(err.contains("cannot also be the output"), "{err}");
    assert_eq!(place.nrt("x.nrt").num_rows(), 3);
}

#[test]
fn densify_pads_truncates_and_writes_masks() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["densify", "x.nrt", "-o", "all.safetensors"]);
    assert!(
        out.contains("code: int64 [3, 2, 3]") && out.ends_with("wrote 3 rows to all.safetensors\n"),
        "{out}"
    );
    let tensors = dense::read(place.path("all.safetensors"), FileAccess::Read).unwrap();
    let names: Vec<&str> = tensors.iter().map(|(n, _)| n.as_str()).collect();
    for name in ["age", "t", "code", "dim1/mask", "dim2/mask"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let tensor = |file: &str, name: &str| {
        let all = dense::read(place.path(file), FileAccess::Read).unwrap();
        all.into_iter().find(|(n, _)| n == name).unwrap().1
    };
    assert_eq!(
        tensor("all.safetensors", "code").as_slice::<i64>().unwrap()[..6],
        [7, 300, 9, 0, 0, 0]
    );

    place.ok(&[
        "densify",
        "x.nrt",
        "-o",
        "cut.safetensors",
        "--rows",
        "0..1",
        "--max-len",
        "1,2",
        "--side",
        "left",
        "--columns",
        "code",
        "--fill",
        "-1",
    ]);
    let code = tensor("cut.safetensors", "code");
    // The event that remains has no codes, so that the tensor is padding only.
    assert_eq!((code.shape(), code.as_slice::<i64>().unwrap()), (&[1, 1, 2][..], &[-1, -1][..]));

    place.ok(&["convert", "x.nrt", "x.parquet"]);
    for input in ["x.nrt", "x.parquet"] {
        place.ok(&[
            "densify",
            input,
            "-o",
            "last.safetensors",
            "--rows",
            "1..",
            "--keep-types",
            "--columns",
            "age,code",
            "--overwrite",
        ]);
        let code = tensor("last.safetensors", "code");
        assert_eq!(
            (code.shape(), code.as_slice::<u16>().unwrap()),
            (&[2, 1, 2][..], &[0, 0, 4, 5][..])
        );
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--rows", "0..4"]);
        assert!(err.contains("0..4 is out of range"), "{err}");
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--columns", "nope"]);
        assert!(err.contains("nope") && err.contains("age"), "{err}");
        let err = place.fails(1, &["densify", input, "-o", "e.safetensors", "--limit", "10"]);
        assert!(err.contains("limit of 10 bytes"), "{err}");
    }
    assert!(!place.exists("e.safetensors"));
}

#[test]
fn generate_gives_the_same_rows_for_any_number_of_shards() {
    let place = Place::new();
    assert_eq!(
        place.ok(&["generate", "--patients", "40", "--seed", "7", "-o", "a.nrt"]),
        "wrote 40 rows to a.nrt\n"
    );
    let out = place.ok(&[
        "generate",
        "--patients",
        "40",
        "--seed",
        "7",
        "--to",
        "nrt",
        "--shards",
        "3",
        "-o",
        "shards",
    ]);
    assert_eq!(out, "wrote 40 rows to 3 files in shards\n");
    place.ok(&["convert", "shards", "b.nrt"]);
    place.ok(&["generate", "--patients", "40", "--seed", "8", "-o", "c.nrt"]);
    assert_eq!(place.nrt("a.nrt"), place.nrt("b.nrt"));
    assert_ne!(place.nrt("a.nrt"), place.nrt("c.nrt"));
    place.ok(&["generate", "--patients", "40", "--seed", "7", "-o", "a.parquet"]);
    place.ok(&["convert", "a.parquet", "d.nrt"]);
    assert_eq!(place.nrt("a.nrt"), place.nrt("d.nrt"));
    let out =
        place.ok(&["generate", "--patients", "40", "--seed", "7", "--to", "meds", "-o", "meds"]);
    assert_eq!(out, "wrote 40 patients to meds\n");
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "meds", "--json"])).unwrap();
    assert_eq!((json["format"].as_str(), json["rows"].as_u64()), (Some("MEDS"), Some(40)));
    let err = place.fails(1, &["generate", "--patients", "4", "--to", "meds", "-o", "meds"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["generate", "--patients", "0", "-o", "none.nrt"]);
    assert_eq!(place.nrt("none.nrt").num_rows(), 0);
}

#[test]
fn a_column_that_the_format_cannot_hold_is_named() {
    let place = Place::new();
    place.file("s.ndjson", "{\"name\": \"x\", \"codes\": [1]}\n");
    let err = place.fails(1, &["convert", "s.ndjson", "s.nrt"]);
    assert!(err.contains("name"), "{err}");
    assert!(!place.exists("s.nrt"));
    place.file("n.ndjson", "{\"codes\": [1, null]}\n");
    let err = place.fails(1, &["convert", "n.ndjson", "n.nrt"]);
    assert!(err.contains("codes"), "{err}");
    let err = place.fails(1, &["convert", "n.ndjson", "n.xyz"]);
    assert!(err.contains("no known extension"), "{err}");
    place.patients("x.nrt");
    let err = place.fails(2, &["convert", "x.nrt", "y.csv"]);
    let advice = "write it with SQL: serrate -c \"FROM 'x.nrt'\" -o y.csv";
    assert!(err.contains(advice) && !place.exists("y.csv"), "{err}");
    place.ok(&["-c", "FROM 'x.nrt'", "-o", "y.csv"]);
}

#[test]
fn an_output_with_the_extension_of_another_format_is_refused() {
    let place = Place::new();
    place.patients("x.nrt");
    for (out, to) in [("o.parquet", "nrt"), ("o.json", "parquet"), ("o.nrt", "ndjson")] {
        let err = place.fails(2, &["convert", "x.nrt", out, "--to", to]);
        assert!(err.contains(out) && err.contains("use the extension"), "{err}");
        assert!(!place.exists(out));
    }
    place.ok(&["convert", "x.nrt", "o.feather", "--to", "arrow"]);
}

#[test]
fn times_become_integers_in_nrt_and_a_note_says_which() {
    let place = Place::new();
    let sql = "COPY (SELECT [TIMESTAMP '1970-01-01T00:00:01', TIMESTAMP '1970-01-02T00:00:00'] AS time) TO 'x.parquet'";
    place.ok(&["-c", sql]);
    let said = place.run(&["convert", "x.parquet", "x.nrt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("time is written as integers"), "{}", said.err);
    let table = place.nrt("x.nrt");
    let values =
        table.column("time").unwrap().values().as_primitive::<Int64Type>().values().clone();
    assert_eq!(values[1] / values[0], 86_400);
}

#[test]
fn nan_of_nrt_becomes_null_in_formats_with_null_unless_keep_nan_is_given() {
    let place = Place::new();
    place.patients("x.nrt");
    let first =
        |file: &str| place.ok(&["-c", &format!("SELECT t[1] AS t FROM '{file}' WHERE age = 71")]);
    for file in ["x.parquet", "x.arrow"] {
        place.ok(&["convert", "x.nrt", file]);
        assert!(first(file).contains("NULL"), "{file}: {}", first(file));
        place.ok(&["convert", "x.nrt", file, "--keep-nan", "--overwrite"]);
        assert!(first(file).contains("NaN"), "{file}: {}", first(file));
    }
    assert!(first("x.nrt").contains("NULL"));
    for file in ["x.json", "x.ndjson"] {
        place.ok(&["convert", "x.nrt", file]);
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains("\"t\":[null,1.5]"), "{text}");
        assert!(first(file).contains("NULL"), "{file}: {}", first(file));
        place.ok(&["convert", "x.nrt", file, "--keep-nan", "--overwrite"]);
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains("\"t\":[\"NaN\",1.5]"), "{text}");
    }
    // Formats without NULL keep NaN, with and without `--keep-nan`.
    place.ok(&["convert", "x.nrt", "y.nrt"]);
    assert_eq!(fs::read(place.path("x.nrt")).unwrap(), fs::read(place.path("y.nrt")).unwrap());
    place.ok(&["convert", "x.nrt", "x.safetensors"]);
    let all = dense::read(place.path("x.safetensors"), FileAccess::Read).unwrap();
    let t = &all.iter().find(|(n, _)| n == "t").unwrap().1;
    assert!(t.as_slice::<f32>().unwrap()[0].is_nan());
}

#[test]
fn nan_of_parquet_becomes_null_in_json_unless_keep_nan_is_given() {
    let place = Place::new();
    let rows = "SELECT * FROM (VALUES (1.5), (NULL), ('NaN'::DOUBLE)) t(n)";
    place.ok(&["-c", &format!("COPY ({rows}) TO 'x.parquet'")]);
    for file in ["x.json", "x.ndjson"] {
        place.ok(&["convert", "x.parquet", file]);
        let counts = format!("SELECT count(n), count(*), max(n) FROM '{file}'");
        let counts = place.ok(&["-f", "csv", "-c", &counts]);
        assert!(counts.contains("1,3,1.5"), "{file}: {counts}");
        place.ok(&["convert", "x.parquet", file, "--keep-nan", "--overwrite"]);
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.contains("\"NaN\""), "{text}");
    }
}

#[test]
fn columns_of_json_can_be_declared() {
    let place = Place::new();
    place.file("e.json", r#"[{"id": 1, "code": [], "at": "2024-01-02T03:04:05"}, {"id": 2, "code": [], "at": "2024-01-02T03:04:06"}]"#,
    );
    let err = place.fails(1, &["convert", "e.json", "e.nrt"]);
    assert!(err.contains("code"), "{err}");
    let code = ["--schema", "code=uint16[]"];
    let err = place.fails(1, &["convert", "e.json", "e.nrt", code[0], code[1]]);
    assert!(err.contains("--schema at=timestamp") && !place.exists("e.nrt"), "{err}");
    let both = [code[0], code[1], "--schema", "at=timestamp[s]"];
    place.ok(&[&["convert", "e.json", "e.nrt"][..], &both].concat());
    let table = place.nrt("e.nrt");
    assert_eq!(*table.column("code").unwrap().data_type(), DataType::UInt16);
    let at = table.column("at").unwrap().values().clone();
    assert_eq!(at.as_primitive::<Int64Type>().values(), &[1_704_164_645, 1_704_164_646]);
    place.ok(&[&["inspect", "e.json"][..], &both].concat());
    place.ok(&[&["densify", "e.json", "-o", "e.safetensors"][..], &both].concat());
    let err = place.fails(2, &["convert", "e.json", "f.nrt", "--schema", "code=uint7"]);
    assert!(err.contains("uint7") && err.contains("float64"), "{err}");
    let err = place.fails(2, &["convert", "e.nrt", "f.parquet", code[0], code[1]]);
    assert!(err.contains("--schema applies only to JSON"), "{err}");
    // A value that does not fit the declared type is an error that names its position.
    place.file("n.ndjson", "{\"code\": [1, 300]}\n");
    let err = place.fails(1, &["convert", "n.ndjson", "n.nrt", "--schema", "code=uint8"]);
    assert!(err.contains("n.ndjson") && err.contains("code"), "{err}");
}

#[test]
fn an_output_without_an_extension_is_a_folder() {
    let place = Place::new();
    place.patients("x.nrt");
    for out in ["out", "other/"] {
        let said = place.ok(&["convert", "x.nrt", out, "--to", "parquet"]);
        assert_eq!(said, format!("wrote 3 rows to 1 file in {out}\n"));
        assert!(place.path(out).join("x.parquet").is_file());
    }
    let err = place.fails(2, &["convert", "x.nrt", "out"]);
    assert!(err.contains("--to"), "{err}");
    place.ok(&["convert", "x.nrt", "x.pt", "--to", "nrt"]);
    assert!(place.path("x.pt").is_file());
    place.ok(&["generate", "--patients", "2", "--to", "nrt", "-o", "made/"]);
    assert!(place.path("made/0.nrt").is_file());
}

#[test]
fn a_failed_conversion_leaves_no_folders() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    place.file("in/1.ndjson", "{\"a\": [1, null]}\n").file("in/2.ndjson", "{\"a\": [1]}\n");
    let err = place.fails(1, &["convert", "in", "new/deep/out", "--to", "nrt"]);
    assert!(err.contains("\"a\""), "{err}");
    assert!(!place.exists("new"));
    let err = place.fails(1, &["convert", "in", "new/one.nrt"]);
    assert!(err.contains("\"a\"") && !place.exists("new"), "{err}");
}

#[test]
fn zero_shards_are_refused_and_zero_patients_give_empty_tables() {
    let place = Place::new();
    let err =
        place.fails(2, &["generate", "--patients", "4", "--shards", "0", "--to", "nrt", "-o", "s"]);
    assert!(err.contains("--shards"), "{err}");
    place.ok(&["generate", "--patients", "0", "--to", "meds", "-o", "meds"]);
    assert!(place.ok(&["-c", "SELECT count(*) AS n FROM meds('meds')"]).contains(" 0 "));
    place.ok(&["convert", "meds", "none.nrt"]);
    assert_eq!(place.nrt("none.nrt").num_rows(), 0);
    place.ok(&["inspect", "meds"]);
}

#[test]
fn durations_are_text_in_json() {
    let place = Place::new();
    let gap = "TIMESTAMP '2020-01-02 03:00:00' - TIMESTAMP '2020-01-01'";
    place.ok(&["-c", &format!("COPY (SELECT 1 AS id, [{gap}, NULL] AS gap) TO 'x.parquet'")]);
    place.ok(&["convert", "x.parquet", "x.ndjson"]);
    let text = fs::read_to_string(place.path("x.ndjson")).unwrap();
    assert_eq!(text, "{\"id\":1,\"gap\":[\"1d 03:00\",null]}\n");
    place.ok(&["convert", "x.ndjson", "y.parquet", "--schema", "gap=Duration(us)"]);
    let sql =
        "SELECT gap[1] = INTERVAL '27 hours' AS same, arrow_typeof(gap) AS kind FROM 'y.parquet'";
    let out = place.ok(&["-f", "csv", "-c", sql]);
    assert_eq!(out, "same,kind\ntrue,List(Duration(µs))\n");
}
