//! Reads small files of every format that are truncated, or have a bit flipped or a byte inverted.
//! A reader must return an error or a valid table, must never panic, and may take little more
//! memory than for the undamaged file. Every third byte is damaged, or every byte if
//! `SERRATE_DAMAGE_ALL` is set.
#![cfg(feature = "audit")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

extern crate serrate_core as serrate;

#[path = "../../tests/common/counting.rs"]
mod counting;
#[path = "../../tests/common/dictionary_counts.rs"]
mod dictionary_counts;
#[path = "../../tests/common/small_files.rs"]
mod small_files;

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Float32Array, Int32Array, MapArray, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, TimeUnit, UInt32Type};
use bytes::Bytes;
use counting::{LIVE, PEAK};
use dictionary_counts::{OVERSTATED, overstate_dictionary};
use serrate::Result;
use serrate::audit;
use serrate::dense::DenseTensor;
use serrate::dok::MapOptions;
use serrate::io::arrow_ipc::{
    self, IpcReadOptions, IpcTableReader, IpcTableWriter, IpcWriteOptions,
};
use serrate::io::json::{JsonOptions, NdjsonReader};
use serrate::io::meds::{CodeHierarchy, Labels, MedsDataset, Vocabulary};
use serrate::io::meds_torch::{ShardReport, TensorizedCohort, tensorize};
use serrate::io::nrt::{self, NrtFile, WriteOptions};
use serrate::io::parquet::{self, ParquetReadOptions, ParquetTableReader};
use serrate::io::safetensors::{SafetensorsFile, SaveOptions, dense};
use serrate::io::{dictionary, dok};
use serrate::table::{Column, RaggedTable};
use small_files::small_file;

/// Returns a lock that makes tests run one after the other, because they share the memory counters.
fn take_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static QUIET: Once = Once::new();
    // Readers of other crates panic on damaged files. Our readers return these panics as errors, so
    // they are not printed.
    QUIET.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let file = info.location().map_or("", |l| l.file());
            if file.contains("serrate") || file.starts_with("core") || file.starts_with("src") {
                hook(info);
            }
        }));
    });
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that reading a damaged file may take beyond those for the undamaged file and 16 times its
/// length.
const SLACK: usize = 64 << 10;

/// Returns the peak of the bytes that `read` has allocated, and whether it succeeded.
fn measure(read: impl FnOnce() -> Result<()>) -> (usize, bool) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let good = read().is_ok();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), good)
}

/// Reads a file and all its damaged forms, and checks the memory of each read.
fn damage(name: &str, whole: &[u8], read: impl Fn(&[u8]) -> Result<()>) {
    let start = std::time::Instant::now();
    // The first read starts threads and fills caches, so that it is not measured.
    read(whole).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (usual, _) = measure(|| read(whole));
    let most = usual + 16 * whole.len() + SLACK;
    let mut accepted = 0;
    let mut check = |what: String, bytes: &[u8]| {
        let done = catch_unwind(AssertUnwindSafe(|| measure(|| read(bytes))));
        let Ok((peak, good)) = done else { panic!("{name}, {what}: the reader panicked") };
        accepted += usize::from(good);
        assert!(peak <= most, "{name}, {what}: {peak} bytes of memory, at most {most} expected");
    };
    // The step is odd, so that the samples flip each of the eight bits.
    let step = if std::env::var_os("SERRATE_DAMAGE_ALL").is_some() { 1 } else { 3 };
    for end in (0..whole.len()).step_by(step) {
        check(format!("cut at {end} of {}", whole.len()), &whole[..end]);
    }
    let mut bytes = whole.to_vec();
    for at in (0..whole.len()).step_by(step) {
        // Flipped low bits change values a little; flipped high bits make lengths large or
        // negative.
        let bit = [7, 0, 4, 6, 1, 5, 3, 2][at % 8];
        bytes[at] ^= 1 << bit;
        check(format!("bit {bit} of byte {at} of {}", whole.len()), &bytes);
        bytes[at] = !whole[at];
        check(format!("byte {at} of {} inverted", whole.len()), &bytes);
        bytes[at] = whole[at];
    }
    let (bytes, time) = (whole.len(), start.elapsed());
    println!("{name}: {bytes} bytes, {accepted} damaged files are valid, {time:.1?}");
}

/// Overwrites a file without truncating it first. After a truncation, some file systems write the
/// file to the disk at once, which takes ten times as long as reading it.
fn overwrite(path: &Path, bytes: &[u8]) {
    let options = fs::OpenOptions::new().write(true).create(true).truncate(false).clone();
    let mut file = options.open(path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
}

/// Panics if the arrays of a table are not valid.
fn check_table(table: &RaggedTable) {
    for column in table.columns() {
        let array = table.array(column.name()).unwrap().to_arrow();
        if let Ok(array) = array {
            array.to_data().validate_full().unwrap();
        }
    }
}

/// A temporary folder for the files of one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the bytes of the file `name` of `SMALL_FILES`.
    fn bytes_of(&self, name: &str) -> Vec<u8> {
        small_file(self.0.path(), name)
    }
}

#[test]
fn damaged_nrt_files_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    damage("nrt", &folder.bytes_of("table.nrt"), |bytes| {
        let file = NrtFile::from_bytes("t.nrt", Bytes::copy_from_slice(bytes))?;
        file.validate()?;
        for large in [false, true] {
            let file = file.with_large_lists(large);
            check_table(&file.table()?);
            for row in 0..file.num_rows().min(4) {
                check_table(&file.read(row..row + 1, None)?);
                file.rows_within(row..file.num_rows(), file.ndim() - 1, 2)?;
            }
        }
        Ok(())
    });
}

#[test]
fn damaged_safetensors_files_are_errors_or_tensors() {
    let _turn = take_turn();
    let folder = Folder::new();
    damage("safetensors", &folder.bytes_of("tensors.safetensors"), |bytes| {
        let file = SafetensorsFile::from_bytes("t", Bytes::copy_from_slice(bytes))?;
        for tensor in file.tensors() {
            dense::read_one(&file, tensor)?.to_flat()?;
        }
        Ok(())
    });
}

#[test]
fn damaged_sparse_tensors_and_dictionaries_are_errors_or_valid() {
    let _turn = take_turn();
    let folder = Folder::new();
    damage("sparse tensor", &folder.bytes_of("sparse.safetensors"), |bytes| {
        let file = dok::DokFile::from_bytes("m", Bytes::copy_from_slice(bytes))?;
        file.columns()?;
        let tensor = file.tensor(MapOptions::default())?;
        tensor.to_coo()?;
        Ok(())
    });
    damage("dictionary", &folder.bytes_of("dictionary.safetensors"), |bytes| {
        let file = SafetensorsFile::from_bytes("d", Bytes::copy_from_slice(bytes))?;
        let words = dictionary::read_file(&file, MapOptions::default())?;
        for column in words.keys()?.iter().chain([&words.values()?]) {
            column.to_data().validate_full().unwrap();
        }
        Ok(())
    });
}

fn read_pipe(bytes: &[u8], options: &IpcReadOptions) -> Result<()> {
    let pipe = std::io::Cursor::new(bytes.to_vec());
    for table in IpcTableReader::from_stream(pipe, "pipe", options)? {
        check_table(&table?);
    }
    Ok(())
}

#[test]
fn damaged_arrow_files_and_streams_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    for (name, mmap) in [
        ("plain.arrow", true),
        ("zstd.arrow", false),
        ("plain.arrows", false),
        ("lz4.arrows", false),
    ] {
        let bytes = folder.bytes_of(name);
        let path = folder.path("damaged");
        let options = IpcReadOptions { mmap, ..IpcReadOptions::default() };
        damage(name, &bytes, |bytes| {
            overwrite(&path, bytes);
            let read = arrow_ipc::read(&path, &options);
            if name.ends_with(".arrows") {
                // Reading from a pipe must succeed or fail like reading the file.
                let piped = read_pipe(bytes, &options);
                assert_eq!(piped.is_ok(), read.is_ok(), "{piped:?} {read:?}");
            }
            check_table(&read?);
            Ok(())
        });
    }
}

#[test]
fn damaged_parquet_files_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    let bytes = folder.bytes_of("table.parquet");
    let path = folder.path("damaged");
    damage("parquet", &bytes, |bytes| {
        overwrite(&path, bytes);
        // Half of the reads select rows, which uses the page index.
        let other = bytes.iter().fold(0, |sum, b| sum ^ b.count_ones()) % 2 == 0;
        let rows = other.then_some(1..3);
        let options = ParquetReadOptions { rows: rows.clone(), ..ParquetReadOptions::default() };
        let mut batches = Vec::new();
        let mut reader = ParquetTableReader::open(&path, &options)?;
        while let Some(batch) = reader.next_batch() {
            batches.push(batch?);
            check_table(&RaggedTable::try_from_batch(&batches[batches.len() - 1])?);
        }
        let found = concat_batches(&reader.schema(), &batches)?;
        if let Some(stock) = read_stock(bytes) {
            let rows = rows.unwrap_or(0..stock.num_rows());
            assert_eq!(found.columns(), stock.slice(rows.start, rows.len()).columns());
        }
        Ok(())
    });
}

/// Reads a Parquet file with the `parquet` crate. Returns `None` if its reader returns an error or
/// panics.
fn read_stock(bytes: &[u8]) -> Option<RecordBatch> {
    let bytes = Bytes::copy_from_slice(bytes);
    let read = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).ok()?;
        let (schema, reader) = (builder.schema().clone(), builder.build().ok()?);
        let batches = reader.collect::<std::result::Result<Vec<_>, _>>().ok()?;
        concat_batches(&schema, &batches).ok()
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten()
}

#[test]
fn damaged_json_files_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    for name in ["columns.json", "records.json"] {
        damage(name, &folder.bytes_of(name), |bytes| {
            check_table(&RaggedTable::from_json_text(bytes, &JsonOptions::default())?);
            Ok(())
        });
    }
    damage("ndjson", &folder.bytes_of("rows.ndjson"), |bytes| {
        for table in NdjsonReader::new(bytes, JsonOptions::default()) {
            check_table(&table?);
        }
        Ok(())
    });
}

/// Copies a folder with its contents.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

/// Damages one file of a folder in all ways, and reads the folder each time.
fn damage_in(folder: &Path, file: &str, read: impl Fn(&Path) -> Result<()>) {
    let path = folder.join(file);
    let whole = fs::read(&path).unwrap();
    damage(file, &whole, |bytes| {
        overwrite(&path, bytes);
        read(folder)
    });
    fs::write(path, whole).unwrap();
}

#[test]
fn damaged_meds_folders_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    let root = folder.path("meds");
    copy_folder(&data("tiny-meds/data/train"), &root.join("data/train"));
    fs::remove_file(root.join("data/train/1.parquet")).unwrap();
    damage_in(&root, "data/train/0.parquet", |root| {
        audit::check(root, &Default::default())?;
        let shard = MedsDataset::open(root)?.shard("train/0")?.read(&Default::default())?;
        check_table(&shard.events);
        check_table(&shard.statics);
        Ok(())
    });
    copy_folder(&data("tiny-meds/metadata"), &root.join("metadata"));
    damage_in(&root, "metadata/codes.parquet", |root| {
        Vocabulary::read(root.join("metadata/codes.parquet"))?;
        drop(CodeHierarchy::read(root.join("metadata/codes.parquet")));
        Ok(())
    });
    damage_in(&root, "metadata/subject_splits.parquet", |root| {
        MedsDataset::open(root)?.subject_splits().map(drop)
    });
    small_file(&root, "labels.parquet");
    damage_in(&root, "labels.parquet", |root| Labels::read(root.join("labels.parquet")).map(drop));
}

#[test]
fn damaged_tensorized_cohorts_are_errors_or_tables() {
    let _turn = take_turn();
    let folder = Folder::new();
    let root = small_cohort(&folder);
    let read = |root: &Path| {
        let cohort = TensorizedCohort::open(root)?;
        for shard in 0..cohort.shards().len() {
            let tables = cohort.read_meds(shard)?;
            check_table(&tables.events);
            check_table(&tables.statics);
        }
        Ok(())
    };
    let name = TensorizedCohort::open(&root).unwrap().shards()[0].name().to_owned();
    damage_in(&root, &format!("data/{name}.nrt"), read);
    damage_in(&root, &format!("tokenization/schemas/{name}.parquet"), read);
}

/// Writes a Parquet file of columns without lists.
fn write_rows(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let rows = columns[0].1.len();
    let mut builder = RaggedTable::builder().rows(rows);
    for (name, values) in columns {
        builder = builder.column(name, 0, values);
    }
    let options = parquet::ParquetWriteOptions { overwrite: true, ..Default::default() };
    parquet::write(path, &builder.build().unwrap(), &options).unwrap();
}

/// Tensorizes the first shard of the data set `tiny-meds` in `folder`, and returns the folder of
/// the cohort.
fn small_cohort(folder: &Folder) -> PathBuf {
    let (meds, root) = (folder.path("meds"), folder.path("cohort"));
    copy_folder(&data("tiny-meds/data/train"), &meds.join("data/train"));
    fs::remove_file(meds.join("data/train/1.parquet")).unwrap();
    let dataset = MedsDataset::open(&meds).unwrap();
    let done = |_: &[ShardReport]| std::ops::ControlFlow::Continue(());
    tensorize(&dataset, &root, &Default::default(), done).unwrap();
    root
}

#[test]
fn parquet_dictionaries_with_more_numbers_than_bytes_are_errors() {
    let _turn = take_turn();
    let folder = Folder::new();
    let path = folder.path("labels.parquet");
    let subjects: ArrayRef =
        Arc::new(Int32Array::from_iter_values((0..20_000).map(|i| i % 10_000)));
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0; 20_000]));
    write_rows(&path, vec![("subject_id", subjects), ("prediction_time", times)]);
    assert_eq!(Labels::read(&path).unwrap().len(), 20_000);
    let mut bytes = fs::read(&path).unwrap();
    overstate_dictionary(&mut bytes);
    overwrite(&path, &bytes);
    // `io::parquet::dictionary_pages` is obsolete once the `parquet` crate takes less memory.
    let declared = OVERSTATED * size_of::<i32>();
    let (stock, _) = measure(|| {
        assert!(read_stock(&bytes).is_none());
        Ok(())
    });
    assert!(stock > declared, "{stock}");
    let read_table = || parquet::read(&path, &ParquetReadOptions::default()).map(drop);
    let read_labels = || Labels::read(&path).map(drop);
    for read in [&read_table as &dyn Fn() -> Result<()>, &read_labels] {
        let (peak, _) = measure(read);
        assert!(peak < declared / 4, "{peak}");
        let error = read().unwrap_err().to_string();
        assert!(error.contains(&OVERSTATED.to_string()), "{error}");
        assert!(error.contains("subject_id") && error.contains("labels.parquet"), "{error}");
    }
}

#[test]
fn tokens_that_are_not_valid_integers_are_errors() {
    let _turn = take_turn();
    let folder = Folder::new();
    let path = folder.path("codes.parquet");
    let codes: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let tokens = |last| Arc::new(UInt64Array::from(vec![Some(1), last])) as ArrayRef;
    for (last, fits) in [(Some(2), true), (None, true), (Some(u64::MAX), false)] {
        write_rows(&path, vec![("code", codes.clone()), ("code/vocab_index", tokens(last))]);
        assert_eq!(Vocabulary::read(&path).is_ok(), fits, "{last:?}");
    }
    // Tokens that are too large or not integers are errors. They must not be read as padding.
    let root = small_cohort(&folder);
    let cohort = TensorizedCohort::open(&root).unwrap();
    let path = cohort.shards()[0].tensors_path().to_path_buf();
    let table = NrtFile::open(&path, &Default::default()).unwrap().table().unwrap();
    assert!(cohort.read_meds(0).is_ok());
    let len = table.column("code").unwrap().values().len();
    let huge: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX; len]));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN; len]));
    for values in [huge, floats] {
        let columns = table.columns().iter().map(|c| match c.name() {
            "code" => Column::new("code", 2, values.clone()),
            _ => c.clone(),
        });
        let table = table.with_columns(columns.collect()).unwrap();
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        nrt::write(&path, &table, &options).unwrap();
        assert!(cohort.read_meds(0).is_err());
    }
}

#[test]
fn memory_does_not_depend_on_the_largest_token() {
    let _turn = take_turn();
    let folder = Folder::new();
    let root = small_cohort(&folder);
    let codes: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let tokens: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::from(u32::MAX) - 1]));
    let path = root.join("metadata/codes.parquet");
    write_rows(&path, vec![("code", codes), ("code/vocab_index", tokens)]);
    let (peak, good) = measure(|| audit::check(&root, &Default::default()).map(drop));
    assert!(good && peak < 64 << 20, "{peak}");
    let (peak, good) = measure(|| TensorizedCohort::open(&root)?.read_meds(0).map(drop));
    assert!(!good && peak < 64 << 20, "{peak}");
}

#[test]
fn deeply_nested_types_in_files_are_errors() {
    let _turn = take_turn();
    let folder = Folder::new();
    let one = DenseTensor::from_vec([1], vec![1i64]).unwrap();
    let deep = format!("{}Int64{}", "List(".repeat(200_000), ")".repeat(200_000));
    for (of, words) in [("Int64", None), (deep.as_str(), Some("nested too deeply"))] {
        let columns = format!(r#"[{{"name":"k","type":"{of}"}},{{"name":"v","type":"Int64"}}]"#);
        let metadata = [("format", dictionary::FORMAT.to_owned()), ("columns", columns)];
        let metadata = metadata.map(|(k, v)| (k.to_owned(), v)).into();
        let path = folder.path("d.safetensors");
        let options = SaveOptions { overwrite: true, metadata };
        dense::write(&path, [("keys/k", &one), ("values/v", &one)], &options).unwrap();
        match (dictionary::read(&path), words) {
            (Ok(read), None) => assert_eq!(read.len(), 1),
            (Err(e), Some(words)) => assert!(e.to_string().contains(words), "{e}"),
            (read, _) => panic!("{of:.20}: {read:?}"),
        }
    }
}

#[test]
fn dictionaries_within_maps_are_written() {
    let _turn = take_turn();
    let folder = Folder::new();
    let batch = |words: [&str; 2]| {
        let values: DictionaryArray<UInt32Type> = words.into_iter().collect();
        let keys = StringArray::from(vec!["x", "y"]);
        let fields = vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", values.data_type().clone(), true),
        ];
        let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(values)];
        let entries = StructArray::new(fields.into(), columns, None);
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let offsets = OffsetBuffer::new(vec![0, 1, 2].into());
        let maps = MapArray::new(field, offsets, entries, None, false);
        RecordBatch::try_from_iter([("m", Arc::new(maps) as ArrayRef)]).unwrap()
    };
    let path = folder.path("m.arrow");
    let batches = [batch(["a", "b"]), batch(["c", "a"])];
    let schema = batches[0].schema();
    let mut writer = IpcTableWriter::create(&path, &schema, &IpcWriteOptions::default()).unwrap();
    for batch in &batches {
        writer.write_batch(batch).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = IpcTableReader::open(&path, &IpcReadOptions::default()).unwrap();
    for expected in [["a", "b"], ["c", "a"]] {
        let batch = reader.next_batch().unwrap().unwrap();
        let found = batch.column(0).as_map().values().as_string::<i32>().clone();
        assert_eq!(found.iter().flatten().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn decimals_are_read_as_written() {
    let _turn = take_turn();
    let read = |text: &str, of: DataType| {
        let options = JsonOptions::default().with_column("x", of);
        RaggedTable::from_json_text(text.as_bytes(), &options).map(|table| {
            let values = table.column("x").unwrap().values().clone();
            let text = |i| arrow::util::display::array_value_to_string(&values, i).unwrap();
            (0..values.len()).map(text).collect::<Vec<_>>()
        })
    };
    let big = "100000000000000000000";
    let text = format!(r#"{{"x":[{big},-50,null,-{big}]}}"#);
    for (of, expected) in [
        (DataType::Decimal128(38, 0), [big, "-50", "", &format!("-{big}")]),
        (DataType::Decimal128(38, -1), [big, "-50", "", &format!("-{big}")]),
        (DataType::Decimal256(70, 0), [big, "-50", "", &format!("-{big}")]),
    ] {
        assert_eq!(read(&text, of.clone()).unwrap(), expected, "{of}");
    }
    assert!(read(&text, DataType::Decimal128(20, 0)).is_err());
    // The integer needs more than 128 bits.
    let huge = "9".repeat(50);
    let text = format!(r#"{{"x":[1,{huge}]}}"#);
    let e = read(&text, DataType::Decimal256(76, 0)).unwrap_err().to_string();
    assert!(e.contains("x[1]"), "{e}");
    let text = r#"{"x":[-1,18446744073709551616]}"#;
    for of in [DataType::Timestamp(TimeUnit::Second, None), DataType::Duration(TimeUnit::Second)] {
        let e = read(text, of).unwrap_err().to_string();
        assert!(e.contains("x[1]") && e.contains("18446744073709551616"), "{e}");
    }
}

#[cfg(feature = "sql")]
#[test]
fn sparse_tensors_without_axes_have_at_most_one_entry() {
    let _turn = take_turn();
    let folder = Folder::new();
    for count in [1, 2] {
        let indices = DenseTensor::from_vec([0, count], Vec::<i64>::new()).unwrap();
        let values = DenseTensor::from_vec([count], vec![1.5f32; count]).unwrap();
        let path = folder.path(&format!("{count}.safetensors"));
        let metadata =
            [("format".to_owned(), dok::FORMAT.to_owned()), ("shape".into(), "[]".into())];
        let options = SaveOptions { overwrite: true, metadata: metadata.into() };
        dense::write(&path, [("indices", &indices), ("values", &values)], &options).unwrap();
        let read = serrate::internal::keyed::KeyedContents::read(&path);
        assert_eq!(read.is_ok(), count == 1);
    }
}
