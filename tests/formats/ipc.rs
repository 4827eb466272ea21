//! Ragged tables in Arrow IPC files and streams.

use std::fs;
use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{AsArray, DictionaryArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt16Type, UInt32Type};
use serrate::Error;
use serrate::generate::mimic_table;
use serrate::io::arrow_ipc::{
    self as io, IpcCompression, IpcForm, IpcReadOptions, IpcTableReader, IpcTableWriter,
    IpcWriteOptions,
};
use serrate::table::{Column, RaggedTable};

use crate::make_mixed_table;

/// Returns the table with strings in place of dictionaries of strings.
fn make_texts(table: &RaggedTable) -> RaggedTable {
    let columns = table.columns().iter().map(|c| {
        let plain = match c.data_type() {
            DataType::Dictionary(_, values) => cast(c.values(), values).unwrap(),
            _ => c.values().clone(),
        };
        Column::with_field(c.field().clone(), c.axis(), plain)
            .with_list_nulls(c.list_nulls().to_vec())
    });
    table.with_columns(columns.collect()).unwrap()
}

#[test]
fn batches_with_different_dictionaries_are_written_to_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    let table = |codes: &[&str]| {
        let codes: DictionaryArray<UInt32Type> = codes.iter().copied().collect();
        RaggedTable::builder().column("code", 0, Arc::new(codes)).build().unwrap()
    };
    let parts = [table(&["a", "b"]), table(&["c", "a"])];
    let schema = parts[0].arrow_schema().unwrap();
    let mut writer = IpcTableWriter::create(&path, &schema, &Default::default()).unwrap();
    parts.iter().for_each(|t| writer.write(t).unwrap());
    writer.finish().unwrap();
    let back = io::read(&path, &IpcReadOptions::default()).unwrap();
    let codes = back.column("code").unwrap().values().as_string::<i32>().clone();
    assert_eq!(codes.iter().flatten().collect::<Vec<_>>(), ["a", "b", "c", "a"]);
}

#[test]
fn tables_are_read_back_from_files_and_streams_of_any_compression() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    for form in [IpcForm::File, IpcForm::Stream] {
        for compression in [IpcCompression::None, IpcCompression::Lz4, IpcCompression::Zstd] {
            let options = IpcWriteOptions { overwrite: true, form, compression };
            for table in [
                make_mixed_table(),
                make_mixed_table().slice(1, 3).unwrap(),
                make_mixed_table().slice(2, 0).unwrap(),
            ] {
                io::write(&path, &table, &options).unwrap();
                // A file stores dictionaries as strings, a stream as dictionaries.
                let table = if form == IpcForm::File { make_texts(&table) } else { table };
                for mmap in [true, false] {
                    let options = IpcReadOptions { mmap, ..Default::default() };
                    let back = io::read(&path, &options).unwrap();
                    assert_eq!(back, table, "{form:?} {compression:?}");
                    assert_eq!(back.axis_name(1), Some("visit"));
                }
                let columns = Some(vec!["value".to_string(), "id".to_string()]);
                let some = io::read(&path, &IpcReadOptions { columns, mmap: true }).unwrap();
                assert_eq!(some, table.select(&["id", "value"]).unwrap());
            }
        }
    }
}

#[test]
fn values_of_a_mapped_file_are_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    let table = mimic_table(3, 2).unwrap();
    io::write(&path, &table, &Default::default()).unwrap();
    let mut reader = IpcTableReader::open(&path, &Default::default()).unwrap();
    assert_eq!(reader.num_batches(), Some(1));
    let chunk = reader.next().unwrap().unwrap();
    let address = |t: &serrate::table::RaggedTable| {
        let values = t.column("code").unwrap().values().clone();
        values.as_primitive::<UInt16Type>().values().as_ptr() as usize
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapped = maps.lines().filter(|l| l.ends_with("x.arrow")).any(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split(' ').next().unwrap();
        let number = |s| usize::from_str_radix(s, 16).unwrap();
        (number(start)..number(end)).contains(&address(&chunk))
    });
    assert!(mapped || maps.is_empty(), "the values are not in the mapping of the file");
    assert_eq!(chunk, table);
}

#[test]
fn streams_of_several_batches_are_read_without_seeking() {
    let table = make_mixed_table();
    let options = IpcWriteOptions { form: IpcForm::Stream, ..Default::default() };
    let mut writer =
        IpcTableWriter::new(Vec::new(), &table.arrow_schema().unwrap(), &options).unwrap();
    writer.write(&table.slice(0, 1).unwrap()).unwrap();
    writer.write(&table.slice(1, 3).unwrap()).unwrap();
    let bytes = writer.into_inner().unwrap();
    let chunks: Vec<_> =
        IpcTableReader::from_stream(Cursor::new(bytes), "pipe", &Default::default())
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
    assert_eq!(chunks, [table.slice(0, 1).unwrap(), table.slice(1, 3).unwrap()]);
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    fs::write(&path, b"mine").unwrap();
    assert!(matches!(
        io::write(&path, &make_mixed_table(), &Default::default()),
        Err(Error::Exists(_))
    ));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

/// Reads files that are truncated or have a changed byte in the footer. A truncated file is an
/// error; a changed byte gives an error or a table, and never a panic.
#[test]
fn damaged_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    io::write(&path, &make_mixed_table().select(&["id", "code"]).unwrap(), &Default::default())
        .unwrap();
    let good = fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        io::read(&path, &IpcReadOptions { mmap: false, ..Default::default() })
    };
    for cut in (0..good.len()).step_by(13) {
        assert!(read(&good[..cut]).is_err(), "cut at {cut}");
    }
    let e = read(&good[..good.len() - 1]).unwrap_err().to_string();
    assert!(e.contains("x.arrow"), "{e}");
    let mut refused = 0;
    for at in (good.len().saturating_sub(500)..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] = bad[at].wrapping_add(0x41);
        refused += usize::from(read(&bad).is_err());
    }
    assert!(refused > 10, "{refused}");
}
