//! Compares batches with those that the Python tool meds-torch-data has made from the same cohort
//! with the same options.
//!
//! The test runs every file of `tests/data/synthea-meds-torch-data/reference-batches`, or of the
//! folder that `SERRATE_REFERENCE_BATCHES` names. `SERRATE_REFERENCE_COHORT` and
//! `SERRATE_REFERENCE_MEDS` select another cohort and the data set of its labels. Unknown metadata
//! in a file is a failure. `tests/interop/reference_batches.py` makes such files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serrate::dense::{DType, DenseTensor};
use serrate::io::meds::Labels;
use serrate::io::safetensors::{FileAccess, SafetensorsFile, dense};
use serrate::loader::meds::{MedsLoader, MedsOptions, SequenceUnit, SequenceWindow, StaticsMode};

fn find_folder(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| default.into(), PathBuf::from)
}

/// The members of the metadata of a file that describe its batch.
struct Case {
    cohort: PathBuf,
    split: String,
    labels: Option<Labels>,
    options: MedsOptions,
    statics: StaticsMode,
    items: Vec<usize>,
    /// The subject of each item, and the number of its visible events.
    index: Vec<(i64, i64)>,
    stepped: bool,
}

fn parse_case(metadata: &BTreeMap<String, String>) -> Case {
    let known = ["split", "labels", "items", "config", "index_subject_start_end"];
    if let Some(unknown) = metadata.keys().find(|k| !known.contains(&k.as_str())) {
        panic!("unknown metadata {unknown:?}");
    }
    let text =
        |key: &str| metadata.get(key).unwrap_or_else(|| panic!("no {key:?} in the metadata"));
    let json = |key: &str| serde_json::from_str::<Value>(text(key)).unwrap();
    let numbers = |v: &Value| v.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
    let items: Vec<i64> = numbers(&json("items"));
    let index: Vec<Vec<i64>> =
        json("index_subject_start_end").as_array().unwrap().iter().map(numbers).collect();
    let index = index
        .into_iter()
        .map(|entry| match entry[..] {
            [subject, end] | [subject, 0, end] => (subject, end),
            _ => panic!("index {entry:?}"),
        })
        .collect();

    let config = json("config");
    let (mut len, mut strategy, mut stride, mut overlap) = (None, "random".to_owned(), None, None);
    let mut options = MedsOptions::new(1, 1).compat(true);
    let mut statics = StaticsMode::Include;
    let number = |v: &Value| v.as_u64().map(|n| n as usize);
    for (key, value) in config.as_object().unwrap() {
        let text = || value.as_str().unwrap_or_else(|| panic!("{key}: {value}"));
        let flag = || value.as_bool().unwrap_or_else(|| panic!("{key}: {value}"));
        match key.as_str() {
            "max_seq_len" => len = number(value),
            "seq_sampling_strategy" => strategy = text().to_owned(),
            "batch_mode" => options = options.unit(text().parse().unwrap()),
            "static_inclusion_mode" => {
                statics = text().parse().unwrap();
                options = options.statics(statics);
            }
            "padding_side" => options = options.side(text().parse().unwrap()),
            "step_through_stride" => stride = number(value),
            "step_through_overlap" => overlap = number(value),
            "include_numeric_value" => options = options.numeric_value(flag()),
            "include_time_delta" => options = options.time_delta(flag()),
            "include_subject_window_counts_in_batch" => options = options.window_counts(flag()),
            // These keys do not affect the tensors of a batch.
            "include_window_last_observed_in_schema"
            | "task_labels_dir"
            | "tensorized_cohort_dir" => {}
            _ => panic!("unknown configuration {key}: {value}"),
        }
    }
    let len = len.expect("max_seq_len");
    assert_ne!(strategy, "random", "random windows of another library cannot be reproduced");
    let window = SequenceWindow::named(&strategy, len, stride, overlap).unwrap();
    let labels = match text("labels").as_str() {
        "" => None,
        name => {
            let meds = find_folder("SERRATE_REFERENCE_MEDS", "tests/data/synthea-meds");
            Some(Labels::read(meds.join("labels").join(name)).unwrap())
        }
    };
    Case {
        cohort: find_folder("SERRATE_REFERENCE_COHORT", "tests/data/synthea-meds-torch-data"),
        split: text("split").clone(),
        labels,
        options: options.with_len(len).window(window),
        statics,
        items: items.into_iter().map(|i| usize::try_from(i).unwrap()).collect(),
        index,
        stepped: strategy == "step_through",
    }
}

fn assert_close(name: &str, found: &DenseTensor, expected: &DenseTensor) {
    assert_eq!(found.dtype(), expected.dtype(), "{name}");
    assert_eq!(found.shape(), expected.shape(), "{name}");
    if found.dtype() != DType::F32 {
        assert_eq!(found, expected, "{name}");
        return;
    }
    let (a, b) = (found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{name}, element {i}: {a}, expected {b}");
    }
}

fn check_file(path: &Path) {
    let file = SafetensorsFile::open(path, FileAccess::Read).unwrap();
    let case = parse_case(file.header().metadata());
    let open = |options: MedsOptions| {
        MedsLoader::open(&case.cohort, case.split.as_str(), case.labels.as_ref(), options).unwrap()
    };
    let loader = open(case.options.clone());
    let batch = loader.batch_of(0, &case.items).unwrap();

    let expected = dense::read(path, FileAccess::Read).unwrap();
    let mut names: BTreeSet<&str> = batch.tensors().iter().map(|(name, _)| &**name).collect();
    assert_eq!(names.len(), batch.tensors().len());
    let theirs: BTreeSet<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
    // The collated batch of meds-torch-data has this mask, but not every writer of such files keeps
    // it.
    if case.statics == StaticsMode::Prepend && !theirs.contains("static_mask") {
        assert!(names.remove("static_mask"));
    }
    assert_eq!(names, theirs);
    for (name, expected) in &expected {
        assert_close(name, batch.tensor(name).unwrap(), expected);
    }

    // The items of the file must be those of the loader.
    assert_eq!(case.index.len(), case.items.len());
    let whole = case.options.clone().compat(false).statics(StaticsMode::Omit);
    let (subjects, ends): (Vec<i64>, Vec<i64>) = case.index.iter().copied().unzip();
    let ours = |batch: &serrate::loader::Batch, name: &str| {
        batch.tensor(name).unwrap().as_slice::<i64>().unwrap().to_vec()
    };
    if case.stepped {
        return;
    }
    let whole =
        open(whole.unit(SequenceUnit::Event).with_len(1 << 30).window(SequenceWindow::ToEnd));
    let batch = whole.batch_of(0, &case.items).unwrap();
    assert_eq!(ours(&batch, "subject_id"), subjects);
    assert_eq!(ours(&batch, "event_end"), ends);
    assert!(ours(&batch, "event_start").iter().all(|start| *start == 0));
}

#[test]
fn batches_equal_those_of_meds_torch_data() {
    let default = "tests/data/synthea-meds-torch-data/reference-batches";
    let folder = find_folder("SERRATE_REFERENCE_BATCHES", default);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    if folder == Path::new(default) {
        assert_eq!(files.len(), 48);
    }
    let mut failed = 0;
    for path in &files {
        if let Err(panic) = std::panic::catch_unwind(|| check_file(path)) {
            let message = panic.downcast_ref::<String>().cloned();
            eprintln!("{}: {}", path.display(), message.unwrap_or_default());
            failed += 1;
        }
    }
    assert_eq!(failed, 0, "number of failed files among {}", files.len());
}

fn list_codes(loader: &MedsLoader) -> Vec<DenseTensor> {
    let batches = loader.epoch(0).unwrap().map(Result::unwrap);
    let names = ["code", "time_delta_days", "static_code", "subject_id", "boolean_value"];
    batches.flat_map(|b| names.map(|name| b.tensor(name).unwrap().clone())).collect()
}

#[test]
fn batches_of_a_data_set_equal_those_of_its_tensorized_cohort() {
    let labels = Labels::read("tests/data/synthea-meds/labels").unwrap();
    for unit in [SequenceUnit::Measurement, SequenceUnit::Event] {
        let options =
            || MedsOptions::new(100, 20).unit(unit).window(SequenceWindow::ToEnd).shuffle(3);
        let open = |root: &Path, split: Option<&str>| {
            MedsLoader::open(root, split, Some(&labels), options()).unwrap()
        };
        let meds = Path::new("tests/data/synthea-meds");
        let cohort = open(Path::new("tests/data/synthea-meds-torch-data"), Some("train"));
        assert_eq!(cohort.num_items(), 1182);
        assert_eq!(cohort.unknown_labels(), labels.len() - 1182);
        assert_eq!(list_codes(&open(meds, Some("train"))), list_codes(&cohort));

        // The same shards with a file of splits instead of folders of splits.
        let folder = tempfile::tempdir().unwrap();
        let copy = |from: &str, to: &str| {
            let to = folder.path().join(to);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(meds.join(from), to).unwrap();
        };
        copy("metadata/codes.parquet", "metadata/codes.parquet");
        copy("metadata/subject_splits.parquet", "metadata/subject_splits.parquet");
        for (i, shard) in ["train/0", "tuning/0", "train/1", "held_out/0"].iter().enumerate() {
            copy(&format!("data/{shard}.parquet"), &format!("data/{i}.parquet"));
        }
        assert_eq!(list_codes(&open(folder.path(), Some("train"))), list_codes(&cohort));
        assert_eq!(open(folder.path(), None).num_items(), labels.len());
        let message = |split: &str| {
            let loader = MedsLoader::open(folder.path(), split, None, options());
            loader.unwrap_err().to_string()
        };
        assert!(message("trains").contains("no shard of the split \"trains\""));
        std::fs::remove_file(folder.path().join("metadata/subject_splits.parquet")).unwrap();
        assert!(message("train").contains("subject_splits.parquet"));
    }
}

#[test]
fn subjects_with_only_static_facts_are_rows_of_padding() {
    let statics = |unit, statics| {
        let options = MedsOptions::new(100, 10).unit(unit).statics(statics);
        let loader = MedsLoader::open("tests/data/tiny-meds", None, None, options).unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.len(), loader.num_subjects());
        batch
    };
    let rows = |batch: &serrate::loader::Batch, name: &str| -> Vec<Vec<i64>> {
        let tensor = batch.tensor(name).unwrap().cast(DType::I64).unwrap();
        (0..batch.len())
            .map(|i| tensor.row(i).unwrap().as_slice::<i64>().unwrap().to_vec())
            .collect()
    };
    for unit in [SequenceUnit::Measurement, SequenceUnit::Event] {
        let batch = statics(unit, StaticsMode::Include);
        let (code, fact) = (rows(&batch, "code"), rows(&batch, "static_code"));
        let none = |row: &Vec<i64>| row.iter().all(|c| *c == 0);
        let only: Vec<usize> =
            (0..batch.len()).filter(|i| none(&code[*i]) && !none(&fact[*i])).collect();
        assert!(!only.is_empty());
        let ends = rows(&batch, "event_end");
        let numbers = rows(&batch, "numeric_value_mask");
        assert!(only.iter().all(|i| ends[*i] == [0] && none(&numbers[*i])));
        // Prepended facts are the first event, or the first measurements, of the sequence.
        let batch = statics(unit, StaticsMode::Prepend);
        let (code, mask) = (rows(&batch, "code"), rows(&batch, "static_mask"));
        for i in only {
            let known: Vec<i64> = fact[i].iter().copied().filter(|c| *c != 0).collect();
            assert!(code[i].starts_with(&known));
            let n = if unit == SequenceUnit::Event { 1 } else { known.len() as i64 };
            assert_eq!(mask[i].iter().sum::<i64>(), n);
        }
    }
}

/// Returns the names and tensors of each batch of an epoch.
fn list_tensors(loader: &MedsLoader) -> Vec<Vec<(String, DenseTensor)>> {
    let batches = loader.epoch(0).unwrap().map(Result::unwrap);
    let of = |batch: serrate::loader::Batch| {
        batch.tensors().iter().map(|(n, t)| (n.to_string(), t.clone())).collect()
    };
    batches.map(of).collect()
}

#[test]
fn with_compat_a_data_set_has_the_batches_of_the_cohort_made_from_it() {
    use serrate::io::meds::MedsDataset;
    use serrate::io::meds_torch::tensorize;
    let folder = tempfile::tempdir().unwrap();
    let labels = Labels::read("tests/data/synthea-meds/labels").unwrap();
    for name in ["synthea-meds", "tiny-meds"] {
        let meds = Path::new("tests/data").join(name);
        let out = folder.path().join(name);
        let progress = |_: &[_]| std::ops::ControlFlow::Continue(());
        let data = MedsDataset::open(&meds).unwrap();
        let report = tensorize(&data, &out, &Default::default(), progress).unwrap();
        let mut seen = 0;
        for split in [None, Some("train"), Some("tuning"), Some("held_out")] {
            for unit in [SequenceUnit::Measurement, SequenceUnit::Event] {
                for statics in [StaticsMode::Include, StaticsMode::Prepend, StaticsMode::Omit] {
                    let labels =
                        (name == "synthea-meds" && unit == SequenceUnit::Event).then_some(&labels);
                    let open = |root: &Path| {
                        let options = MedsOptions::new(7, 40).compat(true).unit(unit).shuffle(2);
                        MedsLoader::open(root, split, labels, options.statics(statics))
                    };
                    let (raw, cohort) = (open(&meds), open(&out));
                    let (Ok(raw), Ok(cohort)) = (&raw, &cohort) else {
                        assert!(raw.is_err() && cohort.is_err(), "{name} {split:?}");
                        continue;
                    };
                    assert_eq!(raw.num_subjects(), cohort.num_subjects(), "{name} {split:?}");
                    assert_eq!(raw.unknown_labels(), cohort.unknown_labels());
                    assert!(
                        list_tensors(raw) == list_tensors(cohort),
                        "{name} {split:?} {unit:?} {statics:?}"
                    );
                    if split.is_none() {
                        assert_eq!(raw.dropped_measurements(), report.unknown_measurements());
                        assert!(raw.dropped_measurements() > 0, "{name}");
                    }
                    seen += 1;
                }
            }
        }
        assert!(seen > 12, "{name}: {seen}");
    }
}
