//! `serrate inspect`.

use super::*;

#[test]
fn inspect_shows_axes_columns_and_the_cost_of_dense() {
    let place = Place::new();
    place.patients("x.nrt");
    let out = place.ok(&["inspect", "x.nrt"]);
    for expected in ["x.nrt: nrt", "3 rows", "│ code", "UInt16", "33.3%", "dense: "] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "x.nrt", "--json"])).unwrap();
    assert_eq!((json["rows"].as_u64(), json["files"].as_u64()), (Some(3), Some(1)));
    assert_eq!(json["bytes"].as_u64(), Some(fs::metadata(place.path("x.nrt")).unwrap().len()));
    let table = &json["tables"][0];
    let axis = &table["axes"][1];
    assert_eq!(
        (&axis["lists"], &axis["elements"], &axis["min"], &axis["median"], &axis["max"]),
        (&3.into(), &5.into(), &0.into(), &2.into(), &3.into())
    );
    // The 5 codes fill 5 of 3 x 2 x 3 slots of the padded tensor.
    assert_eq!(axis["occupied"].as_f64(), Some(5.0 / 18.0));
    let columns = table["columns"].as_array().unwrap();
    let t = columns.iter().find(|c| c["name"] == "t").unwrap();
    assert_eq!((&t["nulls"], &t["nans"], &t["axis"]), (&0.into(), &1.into(), &1.into()));
    // The dense tensors are age uint8 [3], t float32 [3, 2], code uint16 [3, 2, 3], and boolean
    // masks [3, 2] and [3, 2, 3].
    assert_eq!(json["dense_bytes"].as_u64(), Some(3 + 24 + 36 + 6 + 18));
}

#[test]
fn inspect_reads_every_format_and_names_a_file_of_unknown_format() {
    let place = Place::new();
    place.patients("x.nrt");
    for name in ["x.parquet", "x.arrow", "x.json", "x.ndjson", "x.safetensors"] {
        place.ok(&["convert", "x.nrt", name]);
        let out = place.ok(&["inspect", name]);
        assert!(out.contains("code"), "{name}: {out}");
        let json: serde_json::Value =
            serde_json::from_str(&place.ok(&["inspect", name, "--json"])).unwrap();
        assert_eq!(json["bytes"].as_u64(), Some(fs::metadata(place.path(name)).unwrap().len()));
    }
    place.file("x.bin", "?").file("bad.nrt", "not a header").file("bad.parquet", "no");
    for (name, expected) in [
        ("x.bin", "no known extension"),
        ("none.nrt", "none.nrt"),
        ("bad.nrt", "bad.nrt"),
        ("bad.parquet", "bad.parquet"),
        (".", "several formats"),
    ] {
        let err = place.fails(1, &["inspect", name]);
        assert!(err.contains(expected), "{name}: {err}");
    }
}

#[test]
fn inspect_groups_columns_by_the_lists_they_share() {
    let place = Place::new();
    let sql = "COPY (SELECT * FROM (VALUES (1, [1, 2], [5]), (2, [3], [6, 7, 8])) AS t(id, a, b)) TO 'x.parquet'";
    place.ok(&["-c", sql]);
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "x.parquet", "--json"])).unwrap();
    let tables = json["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0]["axes"][0]["max"], 2);
    assert_eq!(tables[1]["axes"][0]["max"], 3);
    assert!(place.ok(&["inspect", "x.parquet"]).contains("table 2 of 2"));
}

#[test]
fn inspect_counts_splits_shards_and_codes_of_meds_and_of_its_tensors() {
    let place = Place::new();
    let json =
        |args: &[&str]| -> serde_json::Value { serde_json::from_str(&place.ok(args)).unwrap() };
    let meds = data_path("synthea-meds");
    let report = json(&["inspect", &meds, "--json"]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|p| p["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&report["splits"]), ["held_out", "train", "tuning"]);
    assert_eq!(names(&report["shards"]), ["held_out/0", "train/0", "train/1", "tuning/0"]);
    // SQL gives the same counts as `inspect`.
    let sql = |question: &str| -> Vec<u64> {
        let out = place.ok(&["-f", "csv", "-c", &question.replace("MEDS", &meds)]);
        out.lines().skip(1).flat_map(|l| l.split(',').map(|n| n.parse().unwrap())).collect()
    };
    let long = "(SELECT * FROM 'MEDS/data/train/*.parquet')";
    let train = &report["splits"][1];
    let of = |names: [&str; 4]| names.map(|n| train[n].as_u64().unwrap()).to_vec();
    assert_eq!(
        of(["subjects", "events", "measurements", "statics"]),
        sql(&format!(
            "SELECT count(DISTINCT subject_id), count(DISTINCT (subject_id, time)) FILTER (WHERE time IS NOT NULL),
             count(time), count(*) - count(time) FROM {long}"
        ))
    );
    let longest = sql(&format!(
        "SELECT max(events), max(n), max(m) FROM (
           SELECT count(*) AS events, sum(n) AS n, max(n) AS m FROM (
             SELECT subject_id, count(*) AS n FROM {long} WHERE time IS NOT NULL
             GROUP BY subject_id, time) GROUP BY subject_id)"
    ));
    let keys = ["most_events", "most_measurements", "most_measurements_of_an_event"];
    assert_eq!(keys.map(|k| train[k].as_u64().unwrap()).to_vec(), longest);
    let [events, measurements, most] = longest[..] else { panic!("{longest:?}") };
    assert_eq!(train["padded_sm_bytes"], 20 * measurements * 17);
    assert_eq!(train["padded_sem_bytes"], 20 * events * (5 + 13 * most));
    // Codes are sorted by frequency, the most frequent first, and have their descriptions.
    let codes = report["codes"].as_array().unwrap();
    assert_eq!(report["distinct_codes"], codes.len());
    let count = |c: &serde_json::Value| {
        c["measurements"].as_u64().unwrap() + c["statics"].as_u64().unwrap()
    };
    assert!(codes.is_sorted_by(|a, b| count(a) >= count(b)));
    let weight = codes.iter().find(|c| c["code"] == "LAB//29463-7//kg").unwrap();
    let counted = sql(
        "SELECT count(*), count(numeric_value) FROM 'MEDS/data/**/*.parquet' WHERE code == 'LAB//29463-7//kg'",
    );
    assert_eq!([count(weight), weight["values"].as_u64().unwrap()].to_vec(), counted);
    let tiny = data_path("tiny-meds");
    let described = json(&["inspect", &tiny, "--json", "--codes", "100"]);
    let texts =
        described["codes"].as_array().unwrap().iter().filter(|c| c["description"].is_string());
    assert!(texts.count() > 0, "{described}");
    let out = place.ok(&["inspect", &meds, "--codes", "2"]);
    assert!(out.contains("the 2 most frequent of") && out.contains("padded SEM"), "{out}");
    assert!(!place.ok(&["inspect", &meds, "--codes", "0"]).contains("most frequent"));
    // On a terminal of 80 columns, no column of a table is omitted. Each table has a title, and an
    // empty line separates it from the table before it.
    let output = place.command().env("COLUMNS", "80").args(["inspect", &meds]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(!out.contains("more column"), "{out}");
    for expected in
        ["\n\nsplits\n", "\n\nsplits: ", "\n\nshards\n", "\n\nshards: ", "\n\nthe 10 most frequent"]
    {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    for expected in ["most events", "┆ text (dictionary)"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }

    // `inspect` counts the same rows in tensorized data as in the MEDS folder it was made from.
    let cohort = data_path("synthea-meds-torch-data");
    let report = json(&["inspect", &cohort, "--json"]);
    assert_eq!(report["format"], "meds-torch-data");
    assert_eq!(report["splits"][1], *train);
    place.ok(&["convert", &cohort, "cohort.parquet"]);
    place.ok(&["convert", &cohort, "cohort.nrt"]);
    let same = "SELECT count(*) FROM meds('COHORT') a JOIN 'cohort.parquet' b USING (subject_id)
                WHERE a.code_id = b.code_id AND a.static_code_id = b.static_code_id AND a.time = b.time";
    let out = place.ok(&["-f", "csv", "-c", &same.replace("COHORT", &cohort)]);
    assert_eq!(out, format!("count(*)\n{}\n", report["rows"]));
    assert_eq!(place.nrt("cohort.nrt").num_rows() as u64, report["rows"].as_u64().unwrap());
    place.ok(&["densify", &cohort, "-o", "cohort.safetensors", "--rows", "0..2"]);
    assert!(place.fails(2, &["inspect", "cohort.nrt", "--codes", "3"]).contains("--codes"));
}

#[test]
fn inspect_describes_a_folder_of_batches() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    place.ok(&["batches", &cohort, "--batch", "8", "--len", "32", "-o", "train"]);
    let out = place.ok(&["inspect", "train"]);
    for expected in ["train: training batches", "in 4 batches", "items: 28", "code"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["inspect", "train", "--json"])).unwrap();
    assert_eq!((&json["batches"], &json["index"]["len"]), (&4.into(), &32.into()));
    let tensors = json["tensors"].as_array().unwrap();
    let code = tensors.iter().find(|t| t["name"] == "code").unwrap();
    assert_eq!((&code["min_shape"][0], &code["max_shape"][0]), (&4.into(), &8.into()));
    place.file("train/batches.json", "[]");
    assert!(place.fails(1, &["inspect", "train"]).contains("batches.json: the key \"batches\""));
}

#[test]
fn inspect_draws_histograms_in_80_columns() {
    let place = Place::new();
    let draw = |source: &str, locale: &str| -> String {
        let output =
            place.command().args(["inspect", source]).env("LC_ALL", locale).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let start = text.find("\n\nevents per subject").or_else(|| text.find("\n\nelements of"));
        text[start.unwrap_or_else(|| panic!("{text}"))..].to_owned()
    };
    let meds = data_path("synthea-meds");
    for (locale, bar) in [("en_US.UTF-8", '█'), ("C", '#')] {
        let text = draw(&meds, locale);
        for title in [
            "events per subject (median 55, p90 164, p99 349)",
            "measurements per event (",
            "days from first to last time per subject",
            "static facts per subject (",
            "occurrences by code prefix",
        ] {
            assert!(text.contains(&format!("\n{title}")), "{title}: {text}");
        }
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains(bar) && (locale != "C" || text.is_ascii()), "{text}");
        assert_eq!(draw(&meds, locale), text);
    }
    place.patients("x.nrt");
    let text = draw("x.nrt", "C");
    assert!(text.contains("elements of axis 1 per row (median 1, p90 2, p99 2)\n  0 ##"), "{text}");
    assert!(!text.contains("days") && !text.contains("prefix"), "{text}");
}

#[test]
fn charts_are_as_wide_as_the_terminal() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    for (columns, width) in [("20", 40), ("60", 60), ("100", 100), ("300", 120)] {
        let mut command = place.command();
        let output = command.env("COLUMNS", columns).args(["inspect", &meds]).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let bars: Vec<&str> = out.lines().filter(|line| line.ends_with('%')).collect();
        assert!(bars.len() > 20, "{out}");
        for bar in bars {
            assert_eq!(bar.chars().count(), width, "{columns}: {bar}");
        }
    }
}
