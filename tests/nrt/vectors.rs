//! Files that the Python library `nested_ragged_tensors` has written, and files that it must be
//! able to read.

use std::ops::Range;

use serde_json::{Map, Value};
use serrate::Error;
use serrate::io::nrt::{self, NrtFile, NrtSchema, NrtWriter, ReadOptions, WriteOptions};
use serrate::table::RaggedTable;

use crate::support::{names_in, read_cases, shift_tensors, table_of, tensors_of, vectors};

#[test]
fn files_of_the_python_library_round_trip_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(vectors().join("nrt-files")).unwrap() {
        let path = entry.unwrap().path();
        for mmap in [true, false] {
            let options = ReadOptions { mmap, ..ReadOptions::default() };
            let table = NrtFile::open(&path, &options).unwrap().table().unwrap();
            let copy = dir.path().join(path.file_name().unwrap());
            nrt::write(&copy, &table, &WriteOptions { overwrite: true, plain: false }).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copy).unwrap(), "{path:?}");
        }
        files += 1;
    }
    assert_eq!(files, 6);
}

#[test]
fn saved_files_have_the_bytes_of_the_python_library() {
    let dir = tempfile::tempdir().unwrap();
    let mut saved = 0;
    for case in read_cases("nrt/save.json") {
        let Some(expect) = case.get("expect") else { continue };
        let path = dir.path().join("saved.nrt");
        let table = table_of(&expect["tensors"]);
        nrt::write(&path, &table, &WriteOptions { overwrite: true, plain: false }).unwrap();
        let written = std::fs::read(&path).unwrap();
        let theirs = std::fs::read(vectors().join(case["args"]["file"].as_str().unwrap())).unwrap();
        assert_eq!(written.len() as u64, expect["bytes"].as_u64().unwrap(), "{}", case["name"]);
        assert_eq!(written, theirs, "{}", case["name"]);
        assert_eq!(serde_json::to_value(names_in(&path)).unwrap(), expect["header_order"]);
        saved += 1;
    }
    assert_eq!(saved, 6);
}

#[test]
fn tables_of_the_vectors_are_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut built = 0;
    for case in read_cases("nrt/construct.json") {
        let Some(expect) = case.get("expect") else { continue };
        let path = dir.path().join("c.nrt");
        let table = table_of(&expect["tensors"]);
        nrt::write(&path, &table, &WriteOptions { overwrite: true, plain: false }).unwrap();
        let file = NrtFile::open(&path, &ReadOptions::default()).unwrap();
        assert_eq!(file.num_rows() as u64, expect["len"].as_u64().unwrap(), "{}", case["name"]);
        let read = tensors_of(&file.table().unwrap());
        assert_eq!(&read, expect["tensors"].as_object().unwrap(), "{}", case["name"]);
        built += 1;
    }
    assert!(built > 5, "{built}");
}

/// Returns the rows that a Python slice without a step selects of `len` rows.
fn clip_slice(slice: &Value, len: usize) -> Range<usize> {
    let at = |v: &Value, missing: usize| match v.as_i64() {
        None => missing,
        Some(i) if i < 0 => len.saturating_sub(usize::try_from(-i).unwrap()),
        Some(i) => usize::try_from(i).unwrap().min(len),
    };
    at(&slice[0], 0)..at(&slice[1], len)
}

/// Returns a table of the given rows of a file, which are written one by one to another file.
fn rows_of(file: &NrtFile, rows: &[usize], keys: Option<&[&str]>) -> RaggedTable {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.nrt");
    let schema = NrtSchema::of_table(&file.read(0..0, keys).unwrap());
    let mut writer = NrtWriter::create(&path, &schema, &WriteOptions::default()).unwrap();
    for row in rows {
        writer.write(&file.read(*row..row + 1, keys).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    NrtFile::open(path, &ReadOptions::default()).unwrap().table().unwrap()
}

fn load_case(case: &Value) -> serrate::Result<Map<String, Value>> {
    let path = vectors().join(case["input"]["file"].as_str().unwrap());
    let file = NrtFile::open(path, &ReadOptions { mmap: false, large_lists: false })?;
    let keys: Option<Vec<&str>> =
        case["args"]["keys"].as_array().map(|k| k.iter().map(|k| k.as_str().unwrap()).collect());
    let keys = keys.as_deref();
    let len = file.num_rows();
    let row = |i: &Value| {
        let i = i.as_i64().unwrap();
        usize::try_from(if i < 0 { i + i64::try_from(len).unwrap() } else { i }).unwrap()
    };
    let index = &case["args"]["index"];
    if let Some(slice) = index.get("slice") {
        return Ok(tensors_of(&file.read(clip_slice(slice, len), keys)?));
    }
    if let Some(i) = index.get("int") {
        let i = row(i);
        return Ok(shift_tensors(tensors_of(&file.read(i..i + 1, keys)?)));
    }
    if let Some(array) = index.get("array") {
        let rows: Vec<_> = array["data"].as_array().unwrap().iter().map(row).collect();
        let mut tensors = tensors_of(&rows_of(&file, &rows, keys));
        tensors.retain(|name, _| !name.starts_with("dim0/"));
        return Ok(tensors);
    }
    if let Some(tuple) = index.get("tuple") {
        let i = row(&tuple[0]["int"]);
        let table = file.read(i..i + 1, keys)?;
        let row = table.row(0)?;
        let events = row.events(clip_slice(&tuple[1]["slice"], row.len()))?.to_table()?;
        return Ok(shift_tensors(tensors_of(&events)));
    }
    Ok(tensors_of(&file.read(0..len, keys)?))
}

#[test]
fn files_columns_and_rows_load_as_in_the_python_library() {
    let (mut loaded, mut refused) = (0, 0);
    for case in read_cases("nrt/load.json") {
        let name = case["name"].as_str().unwrap();
        // The first two cases cannot be expressed in Rust. For the third, an empty list of columns,
        // this crate returns a table without columns.
        if ["err-bare-str", "err-non-str", "err-empty-keys"].contains(&name) {
            continue;
        }
        match (load_case(&case), case.get("expect")) {
            (Ok(tensors), Some(expect)) => {
                assert_eq!(&tensors, expect["tensors"].as_object().unwrap(), "{name}");
                loaded += 1;
            }
            (Err(e), None) => {
                let fits = match case["error"]["kind"].as_str().unwrap() {
                    "IndexError" => matches!(e, Error::OutOfRange { .. }),
                    "FileNotFoundError" => matches!(e, Error::Io { .. }),
                    _ => matches!(e, Error::NoSuchColumn { .. }),
                };
                assert!(fits, "{name}: {e}");
                refused += 1;
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
    assert_eq!((loaded, refused), (20, 4));
}
