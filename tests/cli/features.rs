//! `serrate features` and the table function `meds_features`.

use serrate::io::dok;

use super::*;

const CHOICE: &str = "prefixes => ['LAB//', 'DRUG//'], codes => ['VISIT_START//OUTPATIENT'], windows => ['90d', 'all']";

fn format_from(options: &str) -> String {
    let meds = data_path("synthea-meds");
    format!("meds_features('{meds}', '{meds}/labels', {options})")
}

#[test]
fn features_equal_a_query_over_meds_asof() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let ours = format!(
        r#"SELECT subject_id, prediction_time,
             "VISIT_START//OUTPATIENT/all/count" AS visits, "LAB//*/90d/count" AS labs,
             "LAB//*/90d/value_count" AS numbers,
             CAST("LAB//*/90d/mean" AS REAL) AS mean, "LAB//*/90d/min" AS least, "LAB//*/90d/max" AS most,
             "LAB//*/all/last" AS last, "DRUG//*/all/count" AS drugs
           FROM {} ORDER BY 1, 2"#,
        format_from(&format!(
            "{CHOICE}, aggregates => ['count', 'value_count', 'mean', 'min', 'max', 'last']"
        ))
    );
    let theirs = format!(
        "WITH known AS (SELECT *,
             ragged_window(code, time, prediction_time, before => INTERVAL '90 days') AS c,
             ragged_window(numeric_value, time, prediction_time, before => INTERVAL '90 days') AS v
           FROM meds_asof('{meds}', '{meds}/labels')),
         masked AS (SELECT *, ragged_flatten(ragged_filter(v, c LIKE 'LAB//%')) AS lab FROM known)
         SELECT subject_id, prediction_time,
           ragged_sum(code == 'VISIT_START//OUTPATIENT') AS visits,
           ragged_sum(c LIKE 'LAB//%') AS labs, ragged_count(lab) AS numbers, ragged_mean(lab) AS mean,
           ragged_min(lab) AS least, ragged_max(lab) AS most,
           ragged_at(ragged_filter(ragged_flatten(numeric_value), ragged_flatten(code) LIKE 'LAB//%' AND ragged_not(ragged_is_null(ragged_flatten(numeric_value)))), -1) AS last,
           ragged_sum(code LIKE 'DRUG//%') AS drugs
         FROM masked ORDER BY 1, 2"
    );
    let ours = place.ok(&["-f", "csv", "-c", &ours]);
    assert_eq!(ours.lines().count(), 1716);
    let (ours, theirs): (Vec<_>, Vec<_>) =
        (ours.lines().map(String::from).collect(), vec![place.ok(&["-f", "csv", "-c", &theirs])]);
    let theirs: Vec<String> = theirs[0].lines().map(String::from).collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn features_do_not_depend_on_partitions_and_batches() {
    let place = Place::new();
    let query = format!("SELECT * FROM {} ORDER BY row", format_from(CHOICE));
    let mut results = Vec::new();
    for (partitions, size) in [(1, 8192), (4, 8192), (3, 7)] {
        let set = format!(
            "SET datafusion.execution.target_partitions = {partitions}; SET datafusion.execution.batch_size = {size}; {query}"
        );
        results.push(place.ok(&["-f", "csv", "-c", &set]));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    let counted = place.ok(&[
        "-f",
        "csv",
        "-c",
        &format!("SELECT count(*) AS n FROM {}", format_from(CHOICE)),
    ]);
    assert_eq!(counted, "n\n1715\n");
}

#[test]
fn features_are_written_as_tables_and_as_sparse_tensors() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let labels = format!("{meds}/labels");
    let args = |out: &'static str| {
        let prefixes = ["--prefix", "LAB//", "--prefix", "DRUG//", "--windows", "90d,all"];
        [&["features", &meds, "--labels", &labels, "-o", out], prefixes.as_slice()].concat()
    };
    let out = place.ok(&args("f.parquet"));
    assert!(out.contains("28 features for 1,715 labels to f.parquet"), "{out}");
    let count = |sql: &str| place.ok(&["-f", "csv", "-c", sql]);
    let columns = count(
        "SELECT count(*) AS n, max(row) AS last, sum(\"LAB//*/all/count\") AS labs FROM 'f.parquet'",
    );
    let of_sql = count(&format!(
        "SELECT count(*) AS n, max(row) AS last, sum(\"LAB//*/all/count\") AS labs FROM {}",
        format_from("prefixes => ['LAB//', 'DRUG//'], windows => ['90d', 'all']")
    ));
    assert_eq!(columns, of_sql);
    // The rows have the order of the labels.
    let ordered = count(
        "SELECT count(*) AS n FROM (SELECT row, lag(row) OVER () AS before FROM 'f.parquet') WHERE row <> before + 1",
    );
    assert_eq!(ordered, "n\n0\n");

    place.ok(&args("sparse"));
    let values = count(
        "SELECT count(*) AS n, count(DISTINCT row) AS rows, sum(value) AS sum FROM 'sparse/values.parquet'",
    );
    let of_sql = count(&format!(
        "SELECT count(*) AS n, count(DISTINCT row) AS rows, sum(value) AS sum FROM ragged_explode((SELECT row, value FROM {}))",
        format_from("prefixes => ['LAB//', 'DRUG//'], windows => ['90d', 'all'], form => 'sparse'")
    ));
    assert_eq!(values, of_sql);
    assert_eq!(count("SELECT count(*) AS n FROM 'sparse/features.parquet'"), "n\n28\n");
    assert_eq!(count("SELECT count(*) AS n FROM 'sparse/labels.parquet'"), "n\n1715\n");
    // The tables of the folder have different columns, so no command reads all of them as one.
    for command in [&["inspect", "sparse"][..], &["convert", "sparse", "one.parquet"]] {
        let err = place.fails(1, command);
        assert!(err.contains("sparse: the folder has the features of labels as three"), "{err}");
        assert!(err.contains("name one of its files: values.parquet, features.parquet"), "{err}");
    }
    place.ok(&["inspect", "sparse/values.parquet"]);
    let names = count(&format!(
        "SELECT name FROM {} LIMIT 2",
        format_from("prefixes => ['LAB//'], windows => ['90d', 'all'], form => 'names'")
    ));
    assert_eq!(names, "name\nLAB//*/90d/count\nLAB//*/90d/sum\n");

    place.ok(&args("f.safetensors"));
    let tensor = dok::read(place.path("f.safetensors")).unwrap();
    assert_eq!(tensor.shape(), [1715, 28]);
    assert!(values.contains(&format!("\n{},", tensor.nnz().unwrap())), "{values}");
    assert!(place.exists("f.features.parquet") && place.exists("f.labels.parquet"));
    let err = place.fails(1, &args("f.safetensors"));
    assert!(err.contains("exists"), "{err}");
}

#[test]
fn wrong_arguments_of_features_are_named() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let labels = format!("{meds}/labels");
    for (more, expected) in [
        (["--windows", "1y"], "write a number of days"),
        (["--aggregates", "median"], "not an aggregate"),
        (["--closed", "half"], "'(]'"),
        (["--form", "wide"], "'columns'"),
        (
            ["-o", "x.npz"],
            "write .parquet, .arrow, .ndjson, .json or .safetensors, or a name without",
        ),
    ] {
        let mut args = vec!["features", &meds, "--labels", &labels];
        if more[0] != "-o" {
            args.extend(["-o", "x.parquet"]);
        }
        args.extend(more);
        let said = place.run(&args);
        assert!(said.code != 0 && said.err.contains(expected), "{more:?}: {}", said.err);
    }
    for (options, expected) in [
        ("window => ['30d']", "no option window"),
        ("windows => [30]", "must be a string"),
        ("codes => ['a', 'a']", "twice"),
        ("form => 'wide'", "'names'"),
        ("aggregates => []", "aggregates"),
    ] {
        let err = place.fails(1, &["-c", &format!("FROM {}", format_from(options))]);
        assert!(err.contains(expected), "{options}: {err}");
    }
    let err = place.fails(1, &["features", &meds, "--labels", &labels, "-o", "all.parquet"]);
    assert!(err.contains("exceed 4096") && err.contains("sparse"), "{err}");
}

#[test]
fn codes_that_do_not_occur_are_named() {
    let place = Place::new();
    let (meds, out) = (data_path("synthea-meds"), place.path("f.parquet"));
    let labels = format!("{meds}/labels");
    let args = ["features", &meds, "--labels", &labels, "--code", "NOPE", "--prefix", "NEVER//"];
    let more = ["--code", "MEDS_BIRTH", "-o", out.to_str().unwrap()];
    let all: Vec<&str> = args.into_iter().chain(more).collect();
    let said = place.run(&all);
    assert_eq!(said.code, 0, "{}", said.err);
    let note = "no label has a measurement of NOPE, NEVER//* in these windows; check the spelling";
    assert!(said.err.contains(note) && !said.err.contains("MEDS_BIRTH"), "{}", said.err);
}
