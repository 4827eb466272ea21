//! Generated patients are the same in files of every format.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float32Type, UInt16Type, UInt32Type};
use serrate::Error;
use serrate::generate::{MedsWriteOptions, SyntheticPatients, mimic_table};
use serrate::io::meds::MedsDataset;
use serrate::io::nrt::{NrtFile, ReadOptions};

#[test]
fn an_nrt_file_has_all_generated_columns_but_the_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    let patients = SyntheticPatients::new(6, 9).unwrap().with_chunk_rows(4).unwrap();
    patients.write_nrt(&path, &Default::default(), |_| ()).unwrap();
    let file = NrtFile::open(&path, &ReadOptions::default()).unwrap();
    let table = file.read(0..9, None).unwrap();
    let expected = mimic_table(9, 6).unwrap();
    for name in ["subject_id", "code", "numeric_value", "time_delta_days"] {
        assert_eq!(table.array(name).unwrap(), expected.array(name).unwrap(), "{name}");
    }
    assert!(table.column("time").is_err());
}

#[test]
fn a_generated_meds_data_set_reads_back_as_the_patients() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("meds");
    let options = MedsWriteOptions { shard_subjects: 5, ..Default::default() };
    let patients = || SyntheticPatients::new(6, 20).unwrap().with_chunk_rows(3).unwrap();
    patients().write_meds(&root, &options, |_| Ok(())).unwrap();

    let data = MedsDataset::open(&root).unwrap();
    let names: Vec<String> = data.shards().map(|s| s.name().to_string()).collect();
    assert_eq!(
        names,
        ["held_out/0", "train/0", "train/1", "train/2", "train/3", "tuning/0"],
        "of 20 subjects, 16 are in shards of 5, then 2 and 2 in one shard each"
    );
    let splits = data.subject_splits().unwrap().unwrap();
    assert_eq!(splits.len(), 20);
    assert_eq!(splits[16], (17, "tuning".to_string()));
    let expected = mimic_table(20, 6).unwrap();
    let mut first = 0;
    for name in ["train/0", "train/1", "train/2", "train/3", "tuning/0", "held_out/0"] {
        let shard = data.shard(name).unwrap().read(&Default::default()).unwrap();
        let rows = expected.slice(first, shard.events.num_rows()).unwrap();
        assert_eq!(shard.events.array("time").unwrap(), rows.array("time").unwrap());
        let tokens = shard.events.column("code_id").unwrap().values().clone();
        let codes = rows.column("code").unwrap().values().clone();
        assert!(
            tokens
                .as_primitive::<UInt32Type>()
                .values()
                .iter()
                .zip(codes.as_primitive::<UInt16Type>().values())
                .all(|(t, c)| *t == u32::from(*c)),
            "the index of a code is its token in the other formats"
        );
        for name in ["numeric_value", "time_delta_days"] {
            let found = shard.events.column(name).unwrap().values().clone();
            let found = found.as_primitive::<Float32Type>();
            let wanted = rows.column(name).unwrap().values().clone();
            let wanted = wanted.as_primitive::<Float32Type>();
            assert_eq!(found.len(), wanted.len());
            assert!(
                (0..found.len()).all(|i| if wanted.value(i).is_nan() {
                    found.is_null(i)
                } else {
                    found.is_valid(i) && found.value(i) == wanted.value(i)
                }),
                "{name}"
            );
        }
        assert_eq!(
            shard.statics.array("static_code").unwrap().lengths(1).unwrap(),
            vec![2; shard.statics.num_rows()]
        );
        first += shard.events.num_rows();
    }
    assert_eq!(first, 20);
    assert_eq!(data.vocabulary().unwrap().len(), 10_003);

    let again = patients().write_meds(&root, &options, |_| Ok(()));
    assert!(matches!(again, Err(Error::Exists(_))));
}

#[test]
fn an_error_of_progress_stops_the_generator() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("meds");
    let patients = SyntheticPatients::new(6, 20).unwrap().with_chunk_rows(3).unwrap();
    let stopped = patients.write_meds(&root, &Default::default(), |done| match done < 6 {
        true => Ok(()),
        false => Err(Error::invalid("stop")),
    });
    assert_eq!(stopped.unwrap_err().to_string(), "stop");
    assert!(!root.join("data").exists());
}

#[test]
fn files_do_not_depend_on_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, rows| {
        let path = dir.path().join(name);
        let patients = SyntheticPatients::new(1, 12).unwrap().with_chunk_rows(rows).unwrap();
        patients.write_nrt(&path, &Default::default(), |_| ()).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(write("a", 1), write("b", 12));
}
