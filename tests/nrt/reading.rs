//! Reading `.nrt` files: which bytes are read, and where the values are in memory.

use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Int32Type};
use bytes::Bytes;
use proptest::prelude::*;
use serrate::array::{Layout, Offsets};
use serrate::io::nrt::{self, NrtFile, ReadOptions, WriteOptions};
use serrate::table::RaggedTable;

use crate::support::{bytes_of, draw_lengths, file_with, i64_bytes, table_from};

const PLAIN: ReadOptions = ReadOptions { mmap: false, large_lists: false };
const MAPPED: ReadOptions = ReadOptions { mmap: true, large_lists: false };

fn save_table(dir: &Path, table: &RaggedTable) -> PathBuf {
    let path = dir.join("t.nrt");
    nrt::write(&path, table, &WriteOptions { overwrite: true, plain: false }).unwrap();
    path
}

fn find_buffer(table: &RaggedTable, column: &str) -> Buffer {
    table.column(column).unwrap().values().to_data().buffers()[0].clone()
}

fn bytes_read(file: &NrtFile) -> u64 {
    file.tensors().source().bytes_read()
}

#[test]
fn reading_a_row_reads_only_the_header_its_bounds_and_its_values() {
    let dir = tempfile::tempdir().unwrap();
    let lengths: Vec<_> = (0..2000).map(|r| (0..r % 40).map(|e| (r + e) % 7).collect()).collect();
    let table = table_from(&lengths);
    let path = save_table(dir.path(), &table);
    let file = NrtFile::open(&path, &PLAIN).unwrap();
    let header = file.tensors().header().data_start();
    assert_eq!(bytes_read(&file), header, "opening reads only the header");

    let row = 1234;
    let (events, leaves) = (lengths[row].len() as u64, lengths[row].iter().sum::<usize>() as u64);
    let read = file.read(row..row + 1, None).unwrap();
    assert_eq!(read, table.slice(row, 1).unwrap());
    // A row needs two bounds of axis 1 and, of axis 2, one bound more than it has events. The
    // values are those of id, time, code, flag and numeric_value.
    let bounds = 2 * 8 + (events + 1) * 8;
    let values = 8 + events * 8 + leaves * (2 + 1 + 4);
    assert_eq!(bytes_read(&file) - header, bounds + values);
    assert!(events > 10 && leaves > 10);

    let before = bytes_read(&file);
    file.read(row..row + 1, Some(&["time"])).unwrap();
    assert_eq!(bytes_read(&file) - before, 2 * 8 + events * 8, "nothing of axis 2 is read");
    let before = bytes_read(&file);
    assert_eq!(file.read(3..900, Some(&[])).unwrap().num_rows(), 897);
    assert_eq!(bytes_read(&file), before, "nothing is read for rows without columns");
}

#[test]
fn read_elements_returns_elements_of_a_row_as_rows() {
    let dir = tempfile::tempdir().unwrap();
    let lengths: Vec<_> = (0..50).map(|r| (0..r % 7).map(|e| (r + e) % 4).collect()).collect();
    let path = save_table(dir.path(), &table_from(&lengths));
    let large = ReadOptions { mmap: true, large_lists: true };
    let columns = ["numeric_value", "time"];
    for options in [PLAIN, MAPPED, large] {
        let file = NrtFile::open(&path, &options).unwrap();
        for row in [0, 1, 6, 13, 49] {
            let first = file.elements_before(row, 1).unwrap();
            let size = file.elements_before(row + 1, 1).unwrap() - first;
            assert_eq!(size, lengths[row].len());
            for within in [0..size, 0..size.min(1), size.min(2)..size, size..size] {
                let whole = file.read(row..row + 1, Some(&columns)).unwrap();
                let expected = whole.squeeze(0).unwrap().slice(within.start, within.len()).unwrap();
                let elements = first + within.start..first + within.end;
                assert_eq!(file.read_elements(elements, Some(&columns)).unwrap(), expected);
            }
        }
        let before = bytes_read(&file);
        file.read_elements(10..12, Some(&["time"])).unwrap();
        assert_eq!(bytes_read(&file) - before, 2 * 8, "no bounds are read for a column on axis 1");
        assert!(file.read_elements(0..10_000, Some(&columns)).is_err());
        let e = file.read_elements(0..1, None).unwrap_err().to_string();
        assert!(e.contains("has 0 levels of lists") && e.contains("select"), "{e}");
    }
}

#[test]
fn mapped_values_are_not_copied_and_buffers_have_the_size_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let table = table_from(&vec![vec![40, 50]; 100]);
    let file = NrtFile::open(save_table(dir.path(), &table), &MAPPED).unwrap();
    let (whole, part) = (file.table().unwrap(), file.read(50..60, None).unwrap());
    let (all, some) = (find_buffer(&whole, "numeric_value"), find_buffer(&part, "numeric_value"));
    assert_eq!(some.as_ptr() as usize - all.as_ptr() as usize, 50 * 90 * 4);
    assert_eq!(some.len(), 10 * 90 * 4);
    assert_eq!(some.capacity(), some.len(), "the buffer is as large as its rows");
    let charged: usize = part.columns().iter().map(|c| c.values().get_buffer_memory_size()).sum();
    assert!(charged < 10 * 90 * 10, "{charged}");
}

#[test]
fn values_remain_valid_after_the_file_is_closed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let table = table_from(&[vec![3, 0], vec![], vec![1]]);
    let path = save_table(dir.path(), &table);
    let read = NrtFile::open(&path, &MAPPED).unwrap().table().unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(show_tensors(&read), show_tensors(&table));
}

/// Returns the tensors of a table as text, which can be compared although NaN does not equal
/// itself.
fn show_tensors(table: &RaggedTable) -> String {
    serde_json::to_string(&crate::support::tensors_of(table)).unwrap()
}

/// Headers of every length modulo 8 shift the same tensors, so that most are not aligned.
#[test]
fn values_that_are_not_aligned_are_copied() {
    let values: Vec<u8> = (0..40i32).flat_map(|v| v.to_le_bytes()).collect();
    let bits = vec![1u8; 3];
    let dir = tempfile::tempdir().unwrap();
    let mut askew = 0;
    for pad in 0..8 {
        let key = "k".repeat(pad + 1);
        let (name, flag) = (format!("dim2/{key}"), format!("dim0/{key}x"));
        let file = file_with(&[
            (&flag, "BOOL", vec![3], bits.clone()),
            ("dim1/bounds", "I64", vec![3], i64_bytes(&[1, 1, 4])),
            (&name, "I32", vec![40], values.clone()),
            ("dim2/bounds", "I64", vec![4], i64_bytes(&[10, 10, 39, 40])),
        ]);
        let path = dir.path().join("askew.nrt");
        std::fs::write(&path, &file).unwrap();
        let mapped = NrtFile::open(&path, &MAPPED).unwrap();
        let plain = NrtFile::open(&path, &PLAIN).unwrap();
        let memory = NrtFile::from_bytes("memory", Bytes::from(file)).unwrap();
        let odd = mapped.tensors().tensor(&name).unwrap();
        askew += usize::from(!odd.is_aligned());
        for file in [mapped, plain, memory] {
            let table = file.table().unwrap();
            let column = table.column(&key).unwrap().values().as_primitive::<Int32Type>();
            assert_eq!(column.values().to_vec(), (0..40).collect::<Vec<i32>>());
            let last = file.read(2..3, Some(&[&key])).unwrap();
            assert_eq!(last.column(&key).unwrap().values().len(), 30);
            assert_eq!(table.array(&key).unwrap().max_shape(), [3, 3, 29]);
        }
    }
    assert!(askew >= 6, "{askew}");
}

#[test]
fn bounds_may_have_any_integer_type() {
    let dir = tempfile::tempdir().unwrap();
    let ends = [2i64, 2, 5];
    for dtype in ["U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"] {
        let width: usize = dtype[1..].parse::<usize>().unwrap() / 8;
        let bounds: Vec<u8> = ends.iter().flat_map(|e| e.to_le_bytes()[..width].to_vec()).collect();
        let path = dir.path().join(dtype);
        let file = file_with(&[
            ("dim1/bounds", dtype, vec![3], bounds),
            ("dim1/x", "U8", vec![5], vec![1, 2, 3, 4, 5]),
        ]);
        std::fs::write(&path, file).unwrap();
        let file = NrtFile::open(&path, &PLAIN).unwrap();
        assert_eq!(file.table().unwrap().array("x").unwrap().lengths(1).unwrap(), [2, 0, 3]);
        assert_eq!(file.elements_before(2, 1).unwrap(), 2, "{dtype}");
        file.validate().unwrap();
    }
}

#[test]
fn float16_bfloat16_and_booleans_are_read() {
    let halves: Vec<u8> =
        [1.5f32, -2.0].iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect();
    let brains: Vec<u8> =
        [1.5f32, -2.0].iter().flat_map(|v| half::bf16::from_f32(*v).to_le_bytes()).collect();
    let file = file_with(&[
        ("dim0/b", "BF16", vec![2], brains),
        ("dim0/h", "F16", vec![2], halves),
        ("dim0/t", "BOOL", vec![2], vec![0, 1]),
    ]);
    let file = NrtFile::from_bytes("m", file.into()).unwrap();
    let types: Vec<_> = file.columns().iter().map(|c| c.data_type().clone()).collect();
    assert_eq!(types, [DataType::Float32, DataType::Float16, DataType::Boolean]);
    let table = file.table().unwrap();
    let column = |name: &str| table.column(name).unwrap().values().clone();
    assert_eq!(column("b").as_primitive::<Float32Type>().values().to_vec(), [1.5, -2.0]);
    assert_eq!(column("h").as_primitive::<Float16Type>().value(1).to_f32(), -2.0);
    assert_eq!(column("t").as_boolean().values().iter().collect::<Vec<_>>(), [false, true]);
}

#[test]
fn columns_of_equal_names_are_distinguished_by_axis() {
    let file = |tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]| {
        NrtFile::from_bytes("names", file_with(tensors).into()).unwrap()
    };
    let names = |f: &NrtFile| f.columns().iter().map(|c| c.name().to_owned()).collect::<Vec<_>>();
    // A name may contain slashes. A name that occurs on two axes gets the prefix of its axis.
    let f = file(&[
        ("dim0/a/b", "U8", vec![1], vec![1]),
        ("dim0/x", "U8", vec![1], vec![2]),
        ("dim1/bounds", "U8", vec![1], vec![2]),
        ("dim1/dim1/x", "U8", vec![2], vec![3, 4]),
        ("dim1/dim0/y", "U8", vec![2], vec![5, 6]),
    ]);
    assert_eq!(names(&f), ["a/b", "x", "dim0/y", "dim1/dim1/x"]);
    let copy = NrtFile::from_bytes("copy", bytes_of(&f.table().unwrap()).into()).unwrap();
    assert_eq!(names(&copy), names(&f));
    assert_eq!(copy.table().unwrap(), f.table().unwrap());
    let f = file(&[
        ("dim0/x", "U8", vec![1], vec![2]),
        ("dim1/bounds", "U8", vec![1], vec![1]),
        ("dim1/x", "I8", vec![1], vec![3]),
    ]);
    assert_eq!(names(&f), ["dim0/x", "dim1/x"]);
    let copy = NrtFile::from_bytes("copy", bytes_of(&f.table().unwrap()).into()).unwrap();
    assert_eq!(copy.table().unwrap(), f.table().unwrap());
}

#[test]
fn tensors_of_list_lengths_are_dropped_unless_they_are_a_column() {
    let names = |tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]| {
        let file = NrtFile::from_bytes("lengths", file_with(tensors).into()).unwrap();
        file.table().unwrap();
        file.columns().iter().map(|c| c.name().to_owned()).collect::<Vec<_>>()
    };
    let bounds1 = || ("dim1/bounds", "I64", vec![2], i64_bytes(&[2, 3]));
    let bounds2 = || ("dim2/bounds", "I64", vec![3], i64_bytes(&[1, 1, 3]));
    // Old files have such a tensor on every axis, with one length per list.
    let old = [
        bounds1(),
        bounds2(),
        ("dim1/lengths", "I64", vec![2], i64_bytes(&[2, 1])),
        ("dim2/lengths", "I64", vec![3], i64_bytes(&[1, 0, 2])),
        ("dim2/x", "U8", vec![3], vec![1, 2, 3]),
    ];
    assert_eq!(names(&old), ["x"]);
    // This tensor has one value per element of the axis, so that it is a column.
    let column = [bounds1(), bounds2(), ("dim1/lengths", "I64", vec![3], i64_bytes(&[9, 9, 9]))];
    assert_eq!(names(&column), ["lengths"]);
    let only = [bounds1(), ("dim1/lengths", "I64", vec![2], i64_bytes(&[2, 1]))];
    assert_eq!(names(&only), Vec::<String>::new());
}

#[test]
fn files_without_tensors_rows_or_columns_are_read() {
    let open = |tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]| {
        NrtFile::from_bytes("empty", file_with(tensors).into()).unwrap()
    };
    let nothing = open(&[]);
    assert_eq!((nothing.num_rows(), nothing.ndim()), (0, 1));
    assert_eq!(nothing.table().unwrap().columns().len(), 0);
    let rows = open(&[("dim1/bounds", "I64", vec![0], vec![]), ("dim1/x", "F32", vec![0], vec![])]);
    assert_eq!((rows.num_rows(), rows.ndim()), (0, 2));
    assert_eq!(rows.table().unwrap().column("x").unwrap().data_type(), &DataType::Float32);
    assert_eq!(rows.elements_before(0, 1).unwrap(), 0);
    // No column is on axis 1, so that only its bounds tell its length.
    let bare = open(&[
        ("dim0/x", "U8", vec![2], vec![1, 2]),
        ("dim1/bounds", "I64", vec![2], i64_bytes(&[1, 4])),
    ]);
    assert_eq!(bare.axis_len(1).unwrap(), 4);
    let table = bare.table().unwrap();
    assert_eq!(table.ndim(), 2);
    assert_eq!(table.layout(1).unwrap().length(1), 3);
    assert_eq!(bare.read(0..2, Some(&["x"])).unwrap().ndim(), 1);
    assert!(bare.axis_len(2).is_err());
}

#[test]
fn offsets_have_32_bits_unless_large_lists_is_set() {
    let table = table_from(&[vec![3, 0], vec![], vec![1]]);
    let narrow = NrtFile::from_bytes("t", bytes_of(&table).into()).unwrap();
    let wide = narrow.with_large_lists(true);
    assert!(matches!(narrow.table().unwrap().layout(2).unwrap(), Layout::Ragged(Offsets::I32(_))));
    assert!(matches!(wide.table().unwrap().layout(2).unwrap(), Layout::Ragged(Offsets::I64(_))));
    for (file, list) in [(&narrow, "List("), (&wide, "LargeList(")] {
        let schema = file.schema();
        let code = schema.field_with_name("code").unwrap().data_type().to_string();
        assert!(code.starts_with(list), "{code}");
        assert_eq!(show_tensors(&file.table().unwrap()), show_tensors(&table));
        assert_eq!(file.table().unwrap().arrow_schema().unwrap(), schema);
        assert_eq!(file.table().unwrap().to_batch().unwrap().schema(), schema);
        let array = file.table().unwrap().array("code").unwrap().to_arrow().unwrap();
        assert_eq!(array.data_type(), schema.field_with_name("code").unwrap().data_type());
    }
    // Axis 1 has more elements than 32-bit offsets can count. No column is on it, so that the file
    // has no values for them.
    let huge = file_with(&[
        ("dim0/x", "U8", vec![2], vec![1, 2]),
        ("dim1/bounds", "I64", vec![2], i64_bytes(&[5, 3_000_000_000])),
    ]);
    let huge = NrtFile::from_bytes("huge.nrt", huge.into()).unwrap();
    assert_eq!(
        huge.table().unwrap_err().to_string(),
        "huge.nrt: dim1/bounds: 3000000000 values at once exceed the 32-bit offsets of List; read fewer rows at a time or set large_lists"
    );
    assert_eq!(huge.read(0..1, None).unwrap().axis_len(1).unwrap(), 5);
    let wide = huge.with_large_lists(true).table().unwrap();
    assert_eq!(wide.axis_len(1).unwrap(), 3_000_000_000);
}

#[cfg(unix)]
#[test]
fn without_mmap_a_truncated_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = save_table(dir.path(), &table_from(&vec![vec![9]; 50]));
    let file = NrtFile::open(&path, &PLAIN).unwrap();
    let cut = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    cut.set_len(file.tensors().header().data_start() + 20).unwrap();
    let message = file.table().unwrap_err().to_string();
    assert!(message.contains("the file ended while bytes"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reads_with_and_without_mmap_and_from_memory_equal_slices(
        lengths in draw_lengths(), a in 0usize..13, b in 0usize..13, large in any::<bool>()
    ) {
        let dir = tempfile::tempdir().unwrap();
        let table = table_from(&lengths);
        let path = save_table(dir.path(), &table);
        let rows = lengths.len();
        let (a, b) = (a.min(b).min(rows), a.max(b).min(rows));
        let memory = NrtFile::from_bytes("m", std::fs::read(&path).unwrap().into()).unwrap();
        let mapped = NrtFile::open(&path, &ReadOptions { mmap: true, large_lists: large }).unwrap();
        let plain = NrtFile::open(&path, &ReadOptions { mmap: false, large_lists: large }).unwrap();
        let handle = std::fs::File::open(&path).unwrap();
        let handle = NrtFile::from_file("handle", handle, &MAPPED).unwrap();
        for file in [memory, mapped, plain, handle] {
            prop_assert_eq!(show_tensors(&file.table().unwrap()), show_tensors(&table));
            let part = file.read(a..b, None).unwrap();
            prop_assert_eq!(show_tensors(&part), show_tensors(&table.slice(a, b - a).unwrap()));
            let some = file.read(a..b, Some(&["code", "subject_id"])).unwrap();
            let expected = table.slice(a, b - a).unwrap().select(&["code", "subject_id"]).unwrap();
            prop_assert_eq!(some, expected);
            let time = file.read(a..b, Some(&["time"])).unwrap();
            prop_assert_eq!(time.ndim(), 2);
            file.validate().unwrap();
        }
    }

    #[test]
    fn rows_within_returns_the_longest_range_that_fits(
        lengths in draw_lengths(), start in 0usize..12, axis in 0usize..3, limit in 0usize..40
    ) {
        let file = NrtFile::from_bytes("m", bytes_of(&table_from(&lengths)).into()).unwrap();
        let rows = lengths.len();
        let start = start.min(rows);
        let count = |row: &Vec<usize>| match axis {
            0 => 1,
            1 => row.len(),
            _ => row.iter().sum(),
        };
        let before: usize = lengths[..start].iter().map(count).sum();
        prop_assert_eq!(file.elements_before(start, axis).unwrap(), before);
        let fits = (0..=rows - start)
            .filter(|n| lengths[start..start + n].iter().map(count).sum::<usize>() <= limit)
            .max()
            .unwrap_or(0);
        let expected = fits.max((rows - start).min(1));
        prop_assert_eq!(file.rows_within(start..rows, axis, limit).unwrap(), expected);
    }
}
