//! MEDS folders, and tensorized cohorts that are built from them.

use parquet::arrow::ArrowWriter;
use serrate::arrow::array::{
    ArrayRef, Int64Array, ListBuilder, StringArray, StringBuilder, TimestampMicrosecondArray,
};
use serrate::arrow::datatypes::Field;

use super::*;

#[test]
fn meds_converts_to_integer_codes_with_the_vocabulary_in_a_file_next_to_them() {
    let place = Place::new();
    let meds = data_path("tiny-meds");
    let said = place.run(&["convert", &meds, "one.nrt"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("codes to one.codes.parquet"), "{}", said.out);
    assert!(said.err.contains("time is written as integers: microseconds"), "{}", said.err);
    let one = place.nrt("one.nrt");
    assert!(one.column("code").unwrap().data_type().is_integer());
    assert_eq!((one.column("time").unwrap().axis(), one.column("code").unwrap().axis()), (1, 2));
    assert!(one.column("subject_id").unwrap().data_type() == &DataType::Int64);
    assert!(place.exists("one.codes.parquet"));

    place.ok(&["convert", &meds, "out", "--to", "nrt"]);
    for name in
        ["data/train/0.nrt", "data/train/1.nrt", "data/tuning/0.nrt", "metadata/codes.parquet"]
    {
        assert!(place.exists(&format!("out/{name}")), "{name}");
    }
    let rows: usize = ["held_out/0", "train/0", "train/1", "tuning/0"]
        .iter()
        .map(|n| place.nrt(&format!("out/data/{n}.nrt")).num_rows())
        .sum();
    assert_eq!(rows, one.num_rows());
    place.ok(&["convert", "out", "again.nrt"]);
    assert_eq!(
        fs::read(place.path("one.nrt")).unwrap(),
        fs::read(place.path("again.nrt")).unwrap()
    );
    // Each file has its own vocabulary, because another data set assigns other integers to codes.
    let codes = fs::read(place.path("one.codes.parquet")).unwrap();
    place.ok(&["convert", &data_path("synthea-meds"), "two.nrt"]);
    assert!(place.exists("two.codes.parquet"));
    assert_eq!(fs::read(place.path("one.codes.parquet")).unwrap(), codes);
    let err = place.fails(1, &["convert", &meds, "one.nrt"]);
    assert!(err.contains("exists"), "{err}");
    place.ok(&["convert", &meds, "out", "--to", "nrt", "--overwrite"]);
    fs::copy(place.path("one.nrt"), place.path("out/data/older.nrt")).unwrap();
    let other = data_path("synthea-meds");
    let err = place.fails(1, &["convert", &other, "out", "--to", "nrt", "--overwrite"]);
    assert!(err.contains("older.nrt") || err.contains("data/"), "{err}");
    assert!(err.contains("the codes of another data set"), "{err}");
    place.ok(&["convert", "one.nrt", "plain.nrt", "--plain"]);
    assert!(place.nrt("plain.nrt").column("subject_id").is_err());
}

#[test]
fn meds_is_inspected_and_densified_and_converts_to_parquet_with_all_columns() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", &meds, "--json"])).unwrap();
    assert_eq!((json["format"].as_str(), json["files"].as_u64()), (Some("MEDS"), Some(4)));
    let rows = json["rows"].as_u64().unwrap();
    assert!(rows > 0 && json["tables"].as_array().unwrap().len() == 2);
    assert!(place.ok(&["inspect", &meds]).contains("code_id"));
    place.ok(&["convert", &meds, "all.parquet"]);
    let whole: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "all.parquet", "--json"])).unwrap();
    assert_eq!(whole["rows"].as_u64(), Some(rows));
    assert_eq!(whole["tables"][0]["axes"], json["tables"][0]["axes"]);
    let out = place.ok(&[
        "densify",
        &meds,
        "-o",
        "b.safetensors",
        "--rows",
        "0..4",
        "--columns",
        "code,time_delta_days",
        "--max-len",
        "16,8",
    ]);
    assert!(out.contains("code: int64 [4, 16, 8]"), "{out}");
}

#[test]
fn a_subject_in_two_shards_is_refused_by_name() {
    let place = Place::new();
    place.ok(&["generate", "--patients", "20", "--to", "meds", "-o", "meds"]);
    fs::copy(place.path("meds/data/tuning/0.parquet"), place.path("meds/data/held_out/1.parquet"))
        .unwrap();
    for args in [
        &["-c", "SELECT count(*) FROM meds('meds')"][..],
        &["-c", "SELECT count(*) FROM (SELECT code FROM meds('meds')) WHERE code IS NOT NULL"],
        &["convert", "meds", "x.nrt"],
        &["convert", "meds", "out", "--to", "nrt"],
        &["convert", "meds", "cohort", "--to", "meds-torch-data"],
        &["convert", "meds", "cohort", "--to", "meds-torch-data", "--normalize", "--jobs", "1"],
        &["batches", "meds", "--batch", "4", "--len", "8", "-o", "b"],
        &["batches", "meds", "--batch", "4", "--len", "8", "-o", "b", "--compat"],
        &["inspect", "meds"],
    ] {
        let err = place.fails(1, args);
        assert!(
            err.contains("subject ") && err.contains("MEDS keeps all rows of a subject"),
            "{err}"
        );
        assert!(err.contains("tuning/0.parquet") && err.contains("held_out/1.parquet"), "{err}");
    }
    for name in ["x.nrt", "cohort", "b"] {
        assert!(!place.exists(name), "{name}");
    }
    // A subject may be in several splits, but only in one shard of a split.
    place.ok(&[
        "batches", "meds", "--batch", "4", "--len", "8", "-o", "b", "--compat", "--split", "train",
    ]);
    let sql = "SET serrate.meds_shared_subjects = true; SELECT count(*) AS n FROM meds('meds')";
    assert!(place.ok(&["-c", sql]).contains(" 22 "));
}

#[test]
fn meds_becomes_a_cohort_that_is_checked_and_read_in_sql() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let said = place.run(&["convert", &meds, "cohort", "--to", "meds-torch-data", "--normalize"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("wrote 28 subjects, 1,992 events, 24,702 measurements"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("400 codes; 52 measurements of 27 others were dropped"),
        "{}",
        said.out
    );
    assert!(place.exists("cohort/tokenization/schemas/train/1.parquet"));
    let again = place.run(&["convert", &meds, "cohort", "--to", "meds-torch-data"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("--overwrite"), "{}", again.err);
    let to = ["convert", &meds, "cohort", "--to", "meds-torch-data", "--overwrite"];
    let said = place.run(&[&to[..], &["--unknown", "error"]].concat());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("is not among the 400 codes"), "{}", said.err);
    let said = place.ok(&[&to[..], &["--unknown=zero", "--jobs=1"]].concat());
    assert!(said.contains("52 measurements of 27 others have the token 0"), "{said}");
    let said = place.run(&["convert", &meds, "x.parquet", "--unknown", "zero"]);
    assert_eq!(said.code, 2, "{}", said.err);

    let count = "SELECT count(*) AS n, sum(ragged_count(code_id)) AS codes FROM meds('cohort')";
    assert_eq!(place.ok(&["-c", count, "--format", "csv"]), "n,codes\n28,24754\n");
    let first = format!(
        "SELECT count(*) AS n FROM meds('cohort') a JOIN meds('{meds}') b ON a.subject_id = b.subject_id AND a.time = b.time AND a.static_code_id = b.static_code_id"
    );
    assert_eq!(place.ok(&["-c", &first, "--format", "csv"]), "n\n28\n");

    for folder in ["cohort", meds.as_str()] {
        let said = place.ok(&["check", folder]);
        assert!(said.contains("0 errors"), "{said}");
    }
    assert_eq!(place.run(&["check", &meds, "--strict"]).code, 1);
    fs::remove_file(place.path("cohort/data/tuning/0.nrt")).unwrap();
    let said = place.run(&["check", "cohort"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("error: cohort/tokenization/schemas/tuning/0.parquet: [pair]"),
        "{}",
        said.out
    );
    // On a terminal, long lines wrap, and each finding begins with its kind.
    let mut command = place.command();
    let output = command.env("COLUMNS", "60").args(["check", "cohort"]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("error [pair] cohort/tokenization/"), "{out}");
    let is_long = |line: &&str| line.chars().count() > 60 && line.trim_start().contains(' ');
    assert_eq!(out.lines().find(is_long), None, "{out}");
    let help = place.ok(&["check", "--help"]);
    assert!(
        help.contains("error    label-contradiction ") && help.contains("warning  label-late ")
    );
    let json = place.run(&["check", "cohort", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["findings"][0]["check"], "pair");
    assert_eq!(place.run(&["check", "nowhere"]).code, 1);
}

#[test]
fn the_error_for_a_folder_used_as_a_table_says_how_to_read_it() {
    let place = Place::new();
    place.ok(&["generate", "--patients", "2", "--to", "meds", "-o", "meds"]);
    fs::create_dir(place.path("shards")).unwrap();
    // `sets` is not a MEDS folder, although it has a subfolder `data`; `sets/data/a` is one.
    fs::create_dir_all(place.path("sets/data")).unwrap();
    place.ok(&["generate", "--patients", "2", "--to", "meds", "-o", "sets/data/a"]);
    place.ok(&["-c", "COPY (SELECT 1 AS a) TO 'sets/data/b.parquet'"]);
    for (sql, hint) in [
        ("SELECT * FROM sets", "; sets is a folder; read its files as 'sets/'\n"),
        ("SELECT * FROM 'meds'", "; meds is a MEDS folder; read it as meds('meds')\n"),
        ("SELECT * FROM meds", "; meds is a MEDS folder; read it as meds('meds')\n"),
        ("SELECT * FROM 'shards'", "; shards is a folder; read its files as 'shards/'\n"),
    ] {
        let err = place.fails(1, &["-c", sql]);
        assert!(err.contains("not found") && err.contains(hint), "{err}");
    }
    let err = place.fails(1, &["-c", "SELECT * FROM 'nothing'"]);
    assert!(!err.contains("folder"), "{err}");
}

/// Writes a MEDS shard of the subjects `first` and `first + 1`. Its strings have the type `text`;
/// with `wide`, its lists are large lists.
fn write_shard(place: &Place, name: &str, first: i64, text: &DataType, wide: bool) {
    let path = place.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![first, first, first + 1]));
    let times = TimestampMicrosecondArray::from(vec![None, Some(5), Some(6)]);
    let codes: ArrayRef = Arc::new(StringArray::from(vec!["SEX", "A", "B"]));
    let units: ArrayRef = Arc::new(StringArray::from(vec![None, Some("mg"), Some("kg")]));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for tag in ["x", "y", "z"] {
        tags.append_value([Some(tag), None]);
    }
    let tags: ArrayRef = Arc::new(tags.finish());
    let item = Arc::new(Field::new("element", text.clone(), true));
    let list = if wide { DataType::LargeList(item) } else { DataType::List(item) };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("subject_id", ids),
        ("time", Arc::new(times)),
        ("code", cast(&codes, text).unwrap()),
        ("unit", cast(&units, text).unwrap()),
        ("tags", cast(&tags, &list).unwrap()),
    ];
    let columns = columns.into_iter().map(|(name, values)| (name, values, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn shards_with_different_arrow_types_for_strings_and_lists_are_read_together() {
    let place = Place::new();
    let types = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View];
    for (i, text) in types.iter().enumerate() {
        let first = i64::try_from(i).unwrap() * 10;
        write_shard(&place, &format!("meds/data/train/{i}.parquet"), first, text, i > 0);
        // `back` has the same shards in the opposite order, which must give the same rows.
        let back = format!("back/data/train/{}.parquet", types.len() - i);
        write_shard(&place, &back, first, text, i > 0);
    }
    let said = place.ok(&["check", "meds"]);
    assert!(said.contains("\n0 errors"), "{said}");
    let select = |from: &str| {
        let sql = format!("SELECT * FROM {from} ORDER BY subject_id");
        place.ok(&["-c", &sql, "-f", "ndjson"])
    };
    let rows = select("meds('meds')");
    assert_eq!(rows, select("meds('back')"));
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 6);
    // Apart from the ids of their subjects, all shards have the same rows.
    for i in [2, 4] {
        let of_first = lines[i].replace(&format!("\"subject_id\":{}", i * 5), "\"subject_id\":0");
        assert_eq!(of_first, lines[0]);
    }
    assert!(lines[0].contains(r#""tags":[[["y",null]]]"#), "{}", lines[0]);
    assert!(lines[0].contains(r#""unit":[["mg"]]"#), "{}", lines[0]);

    // SQL reads the files as plain Parquet, not as MEDS.
    let count = "SELECT count(*) AS n, count(DISTINCT code) AS codes, count(tags) AS tags, min(unit) AS unit";
    for from in ["'meds/data/train/*.parquet'", "'back/data/train/'"] {
        let sql = format!("{count} FROM {from}");
        assert_eq!(place.ok(&["-c", &sql, "-f", "csv"]), "n,codes,tags,unit\n9,3,9,kg\n", "{from}");
        for (select, expected) in [
            ("min(code), max(code)", "A,SEX\n"),
            ("count(*) FILTER (WHERE unit = 'mg')", "3\n"),
            ("count(DISTINCT tags)", "3\n"),
        ] {
            let said = place.ok(&["-c", &format!("SELECT {select} FROM {from}"), "-f", "csv"]);
            assert!(said.ends_with(&format!("\n{expected}")), "{select} {from}: {said}");
        }
        let sql = format!("SELECT count(*) AS n FROM {from} WHERE code > 'A' AND unit = 'kg'");
        assert_eq!(place.ok(&["-c", &sql, "-f", "csv"]), "n\n3\n", "{from}");
    }

    for folder in ["meds", "back"] {
        place.ok(&["convert", folder, &format!("{folder}.parquet")]);
        place.ok(&["convert", folder, &format!("{folder}.arrow")]);
        for ending in ["parquet", "arrow"] {
            assert_eq!(select(&format!("'{folder}.{ending}'")), rows, "{folder}.{ending}");
        }
        place.ok(&["convert", folder, &format!("{folder}.nrt")]);
        let cohort = format!("{folder} cohort");
        place.ok(&["convert", folder, &cohort, "--to", "meds-torch-data"]);
        for from in [folder, cohort.as_str()] {
            let out = format!("{from} batches");
            let said = place.ok(&["batches", from, "--batch", "8", "--len", "4", "-o", &out]);
            assert!(said.contains("1 batch of 6 items"), "{said}");
        }
    }
    assert_eq!(select("'meds.nrt'"), select("'back.nrt'"));
}
