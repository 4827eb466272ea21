//! `serrate batches`: batches in folders and on standard output, and labels.

use super::*;

fn read_batch(place: &Place, name: &str) -> Vec<(String, serrate::dense::DenseTensor)> {
    dense::read(place.path(name), FileAccess::Read).unwrap()
}

fn find_tensor<'a>(
    batch: &'a [(String, serrate::dense::DenseTensor)],
    name: &str,
) -> &'a serrate::dense::DenseTensor {
    &batch.iter().find(|(n, _)| n == name).unwrap().1
}

fn read_index(place: &Place, folder: &str) -> serde_json::Value {
    let text = fs::read_to_string(place.path(folder).join("batches.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn batches_are_files_that_a_seed_decides() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    let run = |out: &str, more: &[&str]| {
        let mut args = vec!["batches", cohort.as_str(), "--batch", "5", "--len", "16", "-o", out];
        args.extend(more);
        place.run(&args)
    };
    let said = run("a", &["--shuffle", "--seed", "7", "--epochs", "2"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("wrote 12 batches of 56 items ("), "{}", said.out);
    let about = read_index(&place, "a");
    assert_eq!((about["epochs"].as_u64(), about["items"].as_u64()), (Some(2), Some(28)));
    assert_eq!(about["batches"].as_array().unwrap().len(), 12);
    assert_eq!(about["batches"][11]["file"], "batch-000011.safetensors");
    assert_eq!(
        (&about["batches"][11]["epoch"], &about["batches"][11]["items"]),
        (&1.into(), &3.into())
    );
    let first = read_batch(&place, "a/batch-000000.safetensors");
    assert_eq!(find_tensor(&first, "code").shape(), [5, 16]);

    // The result depends on the seed and not on the number of threads.
    run("b", &["--shuffle", "--seed", "7", "--epochs", "2", "--threads", "1"]);
    run("c", &["--shuffle", "--seed", "8", "--epochs", "2"]);
    let bytes = |folder: &str, n: usize| {
        fs::read(place.path(&format!("{folder}/batch-{n:06}.safetensors"))).unwrap()
    };
    for n in 0..12 {
        assert_eq!(bytes("a", n), bytes("b", n));
    }
    assert_ne!(bytes("a", 0), bytes("c", 0));
    assert_ne!(bytes("a", 0), bytes("a", 6));

    // A folder that exists is not overwritten without `--overwrite`.
    let kept = run("a", &[]);
    assert!(kept.code == 1 && kept.err.contains("--overwrite"), "{}", kept.err);
    let said = run(
        "a",
        &[
            "--overwrite",
            "--split",
            "train",
            "--drop-last",
            "--unit",
            "event",
            "--side",
            "left",
            "--static",
            "omit",
        ],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let first = read_batch(&place, "a/batch-000000.safetensors");
    assert_eq!(
        find_tensor(&first, "code").shape()[..2],
        find_tensor(&first, "event_mask").shape()[..]
    );
    assert!(first.iter().all(|(name, _)| !name.starts_with("static")));
    place.file("c/notes.txt", "mine");
    let kept = run("c", &["--overwrite"]);
    assert!(kept.code == 1 && kept.err.contains("notes.txt"), "{}", kept.err);

    // A MEDS folder that is not tensorized needs no conversion first.
    let raw = data_path("synthea-meds");
    let said = place
        .run(&["batches", &raw, "--split", "tuning", "--batch", "2", "--len", "8", "-o", "raw"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(place.exists("raw/batch-000000.safetensors"));
}

#[test]
fn a_stream_has_the_batches_of_the_folder_and_an_end_mark() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    let args = [
        "batches",
        cohort.as_str(),
        "--batch",
        "6",
        "--len",
        "12",
        "--seed",
        "3",
        "--packed",
        "-o",
    ];
    let said = place.run(&[args.as_slice(), &["out"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let output = place.command().args(args).arg("-").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("wrote 5 batches of 28 items"));
    let mut rest = output.stdout.as_slice();
    let mut frames = Vec::new();
    loop {
        let (size, after) = rest.split_at(8);
        let size = usize::try_from(u64::from_le_bytes(size.try_into().unwrap())).unwrap();
        if size == 0 {
            assert!(after.is_empty());
            break;
        }
        let (frame, after) = after.split_at(size);
        frames.push(frame);
        rest = after;
    }
    assert_eq!(frames.len(), 5);
    for (n, frame) in frames.into_iter().enumerate() {
        let file = fs::read(place.path(&format!("out/batch-{n:06}.safetensors"))).unwrap();
        assert_eq!(frame, file);
    }
    let first = read_batch(&place, "out/batch-000000.safetensors");
    assert_eq!(find_tensor(&first, "dim1/cu_seqlens").shape(), [7]);
}

#[test]
fn with_labels_each_item_ends_at_the_time_of_its_label() {
    let place = Place::new();
    let (cohort, labels) =
        (data_path("synthea-meds-torch-data"), data_path("synthea-meds") + "/labels");
    let said = place.run(&[
        "batches", &cohort, "--labels", &labels, "--split", "train", "--batch", "200", "--len",
        "8", "--unit", "event", "-o", "out",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("533 labels are of subjects not in the split train"), "{}", said.err);
    assert!(said.out.contains("of 1,182 items"), "{}", said.out);
    let about = read_index(&place, "out");
    assert_eq!(about["unknown_labels"], 533);
    let files = about["batches"].as_array().unwrap();
    let mut subjects = Vec::new();
    for file in files {
        let batch = read_batch(&place, &format!("out/{}", file["file"].as_str().unwrap()));
        subjects.extend(find_tensor(&batch, "subject_id").as_slice::<i64>().unwrap().to_vec());
        assert_eq!(
            find_tensor(&batch, "boolean_value").shape(),
            find_tensor(&batch, "prediction_time").shape()
        );
        assert!(find_tensor(&batch, "event_mask").shape()[1] <= 8);
    }
    let all = serrate::io::meds::Labels::read(labels + "/emergency_within_a_year/train").unwrap();
    assert_eq!(subjects, all.subject_ids().values().as_ref());

    // `meds_asof` joins the same number of labels.
    place.file(
        "q.sql",
        format!("SELECT count(*) AS n FROM meds_asof('{cohort}', 'labels.parquet');"),
    );
    let copy = "COPY (SELECT 99 AS subject_id, TIMESTAMP '2020-01-01' AS prediction_time) TO 'labels.parquet'";
    assert_eq!(place.run(&["-c", copy]).code, 0);
    let said = place.run(&["q.sql", "--format", "csv"]);
    assert_eq!(said.out.trim(), "n\n0");
    assert!(said.err.contains("1 label is of subjects that are not in the data"), "{}", said.err);
    assert!(!said.err.contains("tasks"), "{}", said.err);

    // Labels of several tasks are refused, because nothing in the rows tells the tasks apart.
    for task in ["a", "b"] {
        let to = format!("TO 'tasks/{task}/0.parquet'");
        assert_eq!(place.run(&["-c", &copy.replace("TO 'labels.parquet'", &to)]).code, 0);
    }
    let count = format!("SELECT count(*) AS n FROM meds_asof('{cohort}', 'tasks')");
    let said = place.run(&["-c", &count]);
    let tasks = "the labels of 2 tasks were combined: a, b; give the folder of one task";
    assert!(said.code == 0 && said.err.contains(tasks), "{}", said.err);
}

#[test]
fn arguments_that_give_no_batches_are_errors_that_name_them() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    place.file("x.nrt", "");
    let base = ["batches", cohort.as_str(), "-o", "out", "--batch", "2", "--len", "4"];
    for (args, code, part) in [
        (
            vec!["batches", "x.nrt", "-o", "out", "--batch", "2", "--len", "4"],
            2,
            "STORED AS BATCHES",
        ),
        (vec!["batches", "nowhere", "-o", "out", "--batch", "2", "--len", "4"], 1, "nowhere"),
        (vec!["batches", cohort.as_str(), "-o", "out", "--len", "4"], 2, "--batch"),
        ([&base[..], &["--unit", "visit"]].concat(), 2, "measurement"),
        ([&base[..], &["--window", "middle"]].concat(), 2, "middle"),
        ([&base[..], &["--window", "end", "--stride", "3"]].concat(), 2, "step"),
        ([&base[..], &["--split", "test"]].concat(), 1, "test"),
        ([&base[..], &["--labels", "nowhere"]].concat(), 1, "nowhere"),
        ([&base[..], &["--compat", "--packed"]].concat(), 2, "--packed"),
        ([&base[..], &["--per-event", "3"]].concat(), 2, "--unit event"),
        (
            [&base[..], &["--window", "step", "--overlap", "4"]].concat(),
            2,
            "--overlap may be at most 3",
        ),
        ([&base[..], &["--epochs", "0"]].concat(), 2, "--epochs"),
        ([&base[..], &["--packed", "--side", "left"]].concat(), 2, "--side left"),
        ([&base[..], &["--packed", "--fixed"]].concat(), 2, "--fixed"),
        ([&base[..], &["--window", "end", "--seed", "7"]].concat(), 2, "add --shuffle"),
        ([&base[..], &["--labels", "labels", "--seed", "0"]].concat(), 2, "add --shuffle"),
    ] {
        let said = place.run(&args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
        assert!(!place.exists("out"));
    }
    let help = place.run(&["batches", "--help"]);
    assert!(help.code == 0 && help.out.contains("--labels labels/"), "{}", help.out);
}

#[test]
fn an_output_folder_with_the_extension_of_another_format_is_refused() {
    let place = Place::new();
    place.patients("x.nrt");
    let (meds, cohort) = (data_path("synthea-meds"), data_path("synthea-meds-torch-data"));
    for args in [
        vec!["batches", &cohort, "--batch", "2", "--len", "4", "-o", "out.npz"],
        vec!["batches", &cohort, "--batch", "2", "--len", "4", "-o", "out.safetensors"],
        vec!["convert", &meds, "out.nrt", "--to", "meds-torch-data"],
        vec!["densify", "x.nrt", "-o", "out.npz"],
        vec!["densify", "x.nrt", "-o", "out.parquet"],
    ] {
        let err = place.fails(2, &args);
        assert!(err.contains("but its name ends in"), "{err}");
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 1, "{args:?}");
    }
    let err = place.fails(1, &["convert", &cohort, "out", "--to", "meds-torch-data"]);
    assert!(err.contains("is already a tensorized cohort"), "{err}");
    place.ok(&["batches", &cohort, "--batch", "9", "--len", "4", "-o", "v1.2"]);
    let err = place.fails(2, &["convert", &meds, "out", "--to", "meds"]);
    assert!(err.contains("invalid value"), "{err}");
    // The error names the missing folder as the argument spells it.
    for args in [
        vec!["batches", "nowhere", "--batch", "2", "--len", "4", "-o", "out"],
        vec!["convert", "nowhere", "out", "--to", "meds-torch-data"],
        vec!["check", "nowhere"],
        vec!["-c", "FROM meds('nowhere')"],
    ] {
        let err = place.fails(1, &args);
        assert!(
            err.contains("nowhere: the folder does not exist; give the folder of a MEDS data set"),
            "{err}"
        );
    }
    let err = place.fails(1, &[&meds]);
    assert!(err.contains("inspect") && err.contains("FROM meds("), "{err}");
}

#[test]
fn a_stream_names_the_categories_of_its_labels() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    let labels = "COPY (SELECT 8 AS subject_id, TIMESTAMP '2020-01-01' AS prediction_time, v AS categorical_value \
                  FROM (VALUES ('no'), ('yes')) AS t(v)) TO 'labels.parquet'";
    place.ok(&["-c", labels]);
    let args = ["batches", &cohort, "--labels", "labels.parquet", "--batch", "1", "--len", "4"];
    let output = place.command().args(args).args(["-o", "-"]).output().unwrap();
    assert!(output.status.success());
    let frame = &output.stdout[8..];
    let header = usize::try_from(u64::from_le_bytes(frame[..8].try_into().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&frame[8..8 + header]).unwrap();
    assert_eq!(header["__metadata__"]["categories"], "[\"no\",\"yes\"]");
    assert_eq!(header["__metadata__"]["batch"], "0");
}

#[test]
fn with_compat_labels_are_sorted_by_file_name_as_strings() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    for n in [9, 10] {
        let sql = format!(
            "COPY (SELECT {n} AS subject_id, TIMESTAMP '2100-01-01' AS prediction_time, {} AS boolean_value) \
             TO 'labels/{n}.parquet'",
            n == 10
        );
        fs::create_dir_all(place.path("labels")).unwrap();
        place.ok(&["-c", &sql]);
    }
    let run = |out: &str, more: &[&str]| {
        let args =
            ["batches", &cohort, "--labels", "labels", "--batch", "4", "--len", "4", "-o", out];
        place.ok(&[args.as_slice(), more].concat());
        let first = read_batch(&place, &format!("{out}/batch-000000.safetensors"));
        find_tensor(&first, "boolean_value").to_string()
    };
    assert_eq!(run("a", &[]), "bool[2] [false, true]");
    assert_eq!(run("b", &["--compat"]), "bool[2] [true, false]");
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_output_folder() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = place
            .command()
            .args(["batches", &cohort, "--batch", "1", "--len", "512", "--epochs", "100000"])
            .args(["-o", "work/out"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = || {
            let Ok(mut parts) = fs::read_dir(place.path("work")) else { return false };
            parts.any(|p| fs::read_dir(p.unwrap().path()).is_ok_and(|files| files.count() > 0))
        };
        while !started() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(fs::read_dir(place.path("work")).unwrap().count(), 0, "{signal}");
    }
}
