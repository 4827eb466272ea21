//! Writing `.nrt` and safetensors files: values that the formats can hold, values that are refused,
//! and files written in chunks.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Int8Array,
    Int32Array, NullArray, StringArray, TimestampMicrosecondArray, UInt8Array, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Float32Type, Int64Type, Schema};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{Layout, list_of};
use serrate::dense::{DType, DenseTensor};
use serrate::io::nrt::{self, NrtFile, NrtSchema, NrtWriter, ReadOptions, WriteOptions};
use serrate::io::safetensors::{
    Dtype, FileAccess, SafetensorsFile, SafetensorsWriter, SaveOptions, dense, write_tensors,
};
use serrate::table::{Column, RaggedTable};

use crate::support::{bytes_of, draw_lengths, file_with, names_in, table_from, tensors_of};

fn make_flat(name: &str, values: ArrayRef) -> RaggedTable {
    RaggedTable::builder().column(name, 0, values).build().unwrap()
}

fn expect_refusal(table: &RaggedTable) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    let error = nrt::write(&path, table, &WriteOptions::default()).unwrap_err().to_string();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files remain in the folder");
    error.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn null_is_nan_in_float_columns_and_refused_in_others() {
    let table = make_flat("x", Arc::new(Float32Array::from(vec![Some(1.0), None])));
    let file = NrtFile::from_bytes("t", bytes_of(&table).into()).unwrap().table().unwrap();
    let x = file.column("x").unwrap().values().as_primitive::<Float32Type>().values().to_vec();
    assert!(x[0] == 1.0 && x[1].is_nan());

    let codes = Int8Array::from(vec![Some(1), Some(2), None, Some(4), None]);
    let table = RaggedTable::builder()
        .lengths([1, 0, 2, 2])
        .unwrap()
        .column("code", 1, Arc::new(codes))
        .build()
        .unwrap();
    assert_eq!(
        expect_refusal(&table),
        "t.nrt: column \"code\" of type Int8 has 2 null value(s), the first in row 2, but an .nrt file has no nulls; fill them, or cast the column to a float type (null becomes NaN)"
    );
    // The first two rows have no NULL, so that their slice can be written.
    bytes_of(&table.slice(0, 2).unwrap());
    let booleans = make_flat("b", Arc::new(BooleanArray::from(vec![Some(true), None])));
    assert!(expect_refusal(&booleans).contains("column \"b\" of type Boolean has 1 null"));
}

#[test]
fn null_lists_are_written_as_empty_lists() {
    let x = Column::new("x", 1, Arc::new(UInt8Array::from(vec![1, 2])))
        .with_list_nulls(vec![Some(NullBuffer::from(vec![true, false, true]))]);
    let table = RaggedTable::builder().lengths([1, 0, 1]).unwrap().push(x).build().unwrap();
    let file = NrtFile::from_bytes("t", bytes_of(&table).into()).unwrap().table().unwrap();
    assert_eq!(file.array("x").unwrap().lengths(1).unwrap(), [1, 0, 1]);
}

#[test]
fn unsupported_types_are_errors_that_say_what_to_do() {
    let one = |t: ArrayRef| expect_refusal(&make_flat("c", t));
    assert_eq!(
        one(Arc::new(StringArray::from(vec!["a"]))),
        "column \"c\" cannot be written to an .nrt file: expected booleans, integers or floats (encode the column to integers with a vocabulary), found Utf8"
    );
    let words: arrow::array::DictionaryArray<arrow::datatypes::Int32Type> =
        vec!["a", "b"].into_iter().collect();
    assert!(one(Arc::new(words)).contains("vocabulary"));
    let time = TimestampMicrosecondArray::from(vec![0]);
    assert!(
        one(Arc::new(time)).contains("cast the column to Int64, which loses its unit and zone")
    );
    assert!(one(Arc::new(Date32Array::from(vec![0]))).contains("or to days as Float64"));
    assert!(one(Arc::new(NullArray::new(1))).contains("cast the column to a supported type"));
    assert!(one(Arc::new(Decimal128Array::from(vec![1]))).contains("cast the column to Float64"));
    for name in ["bounds", "mask", ""] {
        let table = make_flat(name, Arc::new(UInt8Array::from(vec![1])));
        assert_eq!(
            expect_refusal(&table),
            format!(
                "t.nrt: the column name {name:?} is reserved in an .nrt file; rename the column"
            )
        );
    }
}

#[test]
fn ids_are_written_as_int64_and_can_be_omitted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    let table = RaggedTable::builder()
        .lengths([1, 0])
        .unwrap()
        .column("subject_id", 0, Arc::new(Int32Array::from(vec![7, -8])))
        .column("age", 0, Arc::new(Int32Array::from(vec![70, 80])))
        .column("x", 1, Arc::new(UInt8Array::from(vec![1])))
        .build()
        .unwrap();
    nrt::write(&path, &table, &WriteOptions::default()).unwrap();
    let read = NrtFile::open(&path, &ReadOptions::default()).unwrap().table().unwrap();
    let ids = read.column("subject_id").unwrap().values().as_primitive::<Int64Type>();
    assert_eq!(ids.values().to_vec(), [7, -8]);
    assert_eq!(read.column("age").unwrap().data_type(), &DataType::Int32);

    nrt::write(&path, &table, &WriteOptions { overwrite: true, plain: true }).unwrap();
    assert_eq!(names_in(&path), ["dim1/bounds", "dim0/age", "dim1/x"]);
    // If `plain` is set, ids are omitted, even if they are not integers.
    let text = make_flat("subject_id", Arc::new(StringArray::from(vec!["a"])));
    assert!(expect_refusal(&text).contains("vocabulary"));
    let error = nrt::write(&path, &text, &WriteOptions { overwrite: true, plain: true });
    assert!(error.unwrap_err().to_string().contains(
        "the table has 1 row(s) but no columns or axes, so the file would not record the number of rows; add a column, or write it with its ids"
    ));
    let big = make_flat("subject_id", Arc::new(UInt64Array::from(vec![u64::MAX])));
    assert!(expect_refusal(&big).contains("column \"subject_id\""), "{}", expect_refusal(&big));
}

#[test]
fn existing_files_are_overwritten_only_with_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    let table = table_from(&[vec![1]]);
    nrt::write(&path, &table, &WriteOptions::default()).unwrap();
    let again = nrt::write(&path, &table, &WriteOptions::default());
    assert!(matches!(again, Err(Error::Exists(_))));
    nrt::write(&path, &table, &WriteOptions { overwrite: true, plain: false }).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

fn create_writer(dir: &Path, table: &RaggedTable) -> NrtWriter {
    let schema = NrtSchema::of_table(table);
    NrtWriter::create(dir.join("t.nrt"), &schema, &WriteOptions::default()).unwrap()
}

#[test]
fn chunks_that_do_not_match_the_schema_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let x = |values: ArrayRef| make_flat("x", values);
    let bytes: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2]));
    let mut w = create_writer(dir.path(), &x(bytes.clone()));
    let target = dir.path().join("t.nrt").display().to_string();
    let mut refused =
        |table: RaggedTable| w.write(&table).unwrap_err().to_string().replace(&target, "t.nrt");
    assert_eq!(
        refused(x(Arc::new(Int32Array::from(vec![1])))),
        "t.nrt: column \"x\" has type Int32, but had type UInt8 when the file was started; cast the chunks to one type"
    );
    assert_eq!(
        refused(make_flat("y", bytes.clone())),
        "t.nrt: the file has no column \"y\"; remove the column from the table, which may have only the columns x"
    );
    let none = RaggedTable::builder().rows(2).build().unwrap();
    assert_eq!(refused(none), "no column \"x\"; the columns are ");
    let deep = RaggedTable::builder().lengths([2]).unwrap().column("x", 1, bytes).build().unwrap();
    assert_eq!(
        refused(deep),
        "t.nrt: the number of axes is 2 in the table, but 1 in the file; append only tables with the same number of axes as the file"
    );
    assert_eq!(w.num_rows(), 0);
}

#[test]
fn a_writer_without_rows_writes_an_empty_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    let schema = Schema::new(vec![
        Field::new("subject_id", DataType::Int64, true),
        Field::new("code", list_of(2, DataType::UInt16), true),
    ]);
    let schema = NrtSchema::of_arrow(&schema);
    NrtWriter::create(&path, &schema, &WriteOptions::default()).unwrap().finish().unwrap();
    let file = NrtFile::open(&path, &ReadOptions::default()).unwrap();
    assert_eq!((file.num_rows(), file.ndim()), (0, 3));
    assert_eq!(names_in(&path), ["dim0/subject_id", "dim1/bounds", "dim2/bounds", "dim2/code"]);
    file.table().unwrap();
}

#[test]
fn uniform_axes_are_written_as_bounds() {
    let table = RaggedTable::builder()
        .layout(Layout::Uniform { size: 2, lists: 3 })
        .column("x", 1, Arc::new(UInt8Array::from(vec![1, 2, 3, 4, 5, 6])))
        .build()
        .unwrap();
    let file = NrtFile::from_bytes("t", bytes_of(&table).into()).unwrap();
    assert_eq!(file.table().unwrap(), table);
}

#[test]
fn a_file_cannot_be_finished_after_a_failed_write() {
    let dir = tempfile::tempdir().unwrap();
    let size = usize::try_from(i64::MAX).unwrap();
    let table = RaggedTable::builder().layout(Layout::Uniform { size, lists: 1 }).build().unwrap();
    let mut w = create_writer(dir.path(), &table);
    w.write(&table).unwrap();
    assert!(matches!(w.write(&table), Err(Error::Invalid(_))));
    let error = w.finish().unwrap_err().to_string();
    assert!(
        error.ends_with("the file is incomplete, because an earlier table was written only in part; create the file again"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The table is much larger than the buffers of the writer, and its chunks do not end where buffers
/// do.
#[test]
fn large_tables_are_written_through_spool_files() {
    let dir = tempfile::tempdir().unwrap();
    let chunk = table_from(&vec![vec![300, 0, 45]; 400]);
    let mut w = create_writer(dir.path(), &chunk);
    for rows in [0..400, 100..101, 0..0, 7..400, 0..400] {
        w.write(&chunk.slice(rows.start, rows.len()).unwrap()).unwrap();
    }
    // The folder has only the unfinished file and the lock that marks its writer as alive.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "the folder lists spool files");
    w.finish().unwrap();
    let path = dir.path().join("t.nrt");
    assert!(std::fs::metadata(&path).unwrap().len() > 2 << 20);
    let file = NrtFile::open(&path, &ReadOptions::default()).unwrap();
    assert_eq!(file.num_rows(), 400 + 1 + 393 + 400);
    file.validate().unwrap();
    let same = |rows: std::ops::Range<usize>, of: std::ops::Range<usize>| {
        let (a, b) = (file.read(rows, None).unwrap(), chunk.slice(of.start, of.len()).unwrap());
        assert!(tensors_of(&a) == tensors_of(&b));
    };
    same(0..400, 0..400);
    same(400..401, 100..101);
    same(401..794, 7..400);
    same(794..1194, 0..400);
}

#[test]
fn tensors_are_ordered_by_type_then_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.safetensors");
    let types = [
        Dtype::BOOL,
        Dtype::U8,
        Dtype::I8,
        Dtype::I16,
        Dtype::U16,
        Dtype::F16,
        Dtype::BF16,
        Dtype::I32,
        Dtype::U32,
        Dtype::F32,
        Dtype::F64,
        Dtype::I64,
        Dtype::U64,
    ];
    let data = [1u8; 16];
    let names: Vec<_> = types.iter().flat_map(|t| [format!("{t}-b"), format!("{t}-a")]).collect();
    let size = |t: &Dtype| t.bitsize() / 8;
    let all = types.iter().flat_map(|t| [t, t]).zip(&names);
    let tensors = all.map(|(t, n)| (n.as_str(), *t, &[1, 2][..], &data[..2 * size(t)]));
    write_tensors(&path, tensors.clone(), &SaveOptions::default()).unwrap();
    let order =
        ["U64", "I64", "F64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "I8", "U8", "BOOL"];
    let expected: Vec<_> =
        order.iter().flat_map(|t| [format!("{t}-a"), format!("{t}-b")]).collect();
    assert_eq!(names_in(&path), expected);
    let file = SafetensorsFile::open(&path, FileAccess::Map).unwrap();
    assert!(file.tensors().iter().all(|t| t.is_aligned() && t.shape() == [1, 2]));

    // A writer with spool files, and the crate `safetensors`, write the same bytes.
    let spooled = dir.path().join("s.safetensors");
    let mut w = SafetensorsWriter::create(&spooled, &SaveOptions::default()).unwrap();
    for (name, dtype, _, data) in tensors.clone() {
        let id = w.add(name, dtype, &[2]).unwrap();
        w.write(id, data).unwrap();
    }
    w.finish().unwrap();
    let theirs = safetensors::serialize(
        tensors
            .map(|(n, t, s, d)| (n, safetensors::tensor::TensorView::new(t, s.into(), d).unwrap())),
        None,
    );
    assert!(std::fs::read(&path).unwrap() == theirs.unwrap());
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&spooled).unwrap());
}

#[test]
fn invalid_tensors_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.safetensors");
    type Tensor<'a> = (&'a str, Dtype, &'a [usize], &'a [u8]);
    let refused = |tensors: &[Tensor<'_>]| {
        let e = write_tensors(&path, tensors.iter().copied(), &SaveOptions::default());
        assert!(!path.exists());
        e.unwrap_err().to_string().replace(&path.display().to_string(), "t")
    };
    assert_eq!(
        refused(&[("a", Dtype::F32, &[2], &[0; 7])]),
        "t: 7 bytes are given for tensor \"a\", but the type F32 and the shape [2] need 8; correct the shape or the data"
    );
    assert_eq!(
        refused(&[("a", Dtype::F32, &[usize::MAX, 4], &[])]),
        format!(
            "t: 0 bytes are given for tensor \"a\", but the type F32 and the shape [{}, 4] do not give a valid size in whole bytes; correct the shape or the data",
            usize::MAX
        )
    );
    let (a, b) = (("a", Dtype::U8, &[1][..], &[0][..]), ("b", Dtype::F16, &[1][..], &[0, 0][..]));
    assert_eq!(
        refused(&[a, b, ("a", Dtype::F32, &[1], &[0; 4])]),
        "t: two tensors are named \"a\"; rename one of them"
    );
    assert!(refused(&[("__metadata__", Dtype::U8, &[], &[0])]).contains("__metadata__"));

    let mut w = SafetensorsWriter::create(&path, &SaveOptions::default()).unwrap();
    let id = w.add("a", Dtype::U16, &[3]).unwrap();
    assert!(w.add("a", Dtype::U8, &[]).is_err());
    assert!(w.add("z", Dtype::U8, &[0]).is_err());
    w.write(id, &[0; 8]).unwrap();
    let error = w.finish().unwrap_err().to_string();
    assert!(error.ends_with(
        "tensor \"a\" has 8 bytes, which is not a whole number of rows of 6 bytes; write whole rows"
    ));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn dense_tensors_of_all_types_are_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.safetensors");
    let ones = |dtype: DType| {
        DenseTensor::try_new(dtype, [2, 1, 3], vec![1u8; 6 * dtype.size()].into()).unwrap()
    };
    let tensors: Vec<_> = DType::ALL.map(|d| (d.name(), ones(d))).into();
    let named = tensors.iter().map(|(n, t)| (*n, t));
    dense::write(&path, named, &SaveOptions::default()).unwrap();
    for access in [FileAccess::Map, FileAccess::Read] {
        let read = dense::read(&path, access).unwrap();
        assert_eq!(read.len(), tensors.len());
        for (name, tensor) in read {
            let (_, given) = tensors.iter().find(|t| t.0 == name).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (given.dtype(), given.shape()));
            assert_eq!(tensor.as_bytes(), given.as_bytes());
            assert_eq!(dense::dtype(given.dtype()).to_string(), given.dtype().safetensors_name());
        }
    }
    let wrong = file_with(&[("b", "BOOL", vec![2], vec![1, 2])]);
    std::fs::write(&path, wrong).unwrap();
    let error = dense::read(&path, FileAccess::Map).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "tensor \"b\": element 1 of a bool tensor is the byte 2; every byte must be 0 or 1"
        ),
        "{error}"
    );
    std::fs::write(&path, file_with(&[("c", "C64", vec![1], vec![0; 8])])).unwrap();
    let error = dense::read(&path, FileAccess::Map).unwrap_err().to_string();
    assert!(error.ends_with("tensor \"c\": dense tensors do not support the type C64; create the file again with another type"), "{error}");
}

#[test]
fn metadata_and_scalars_are_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.safetensors");
    let metadata = [("b".to_owned(), "2".to_owned()), ("a".into(), "\"1\"".into())].into();
    let options = SaveOptions { overwrite: false, metadata };
    write_tensors(&path, [("s", Dtype::F32, &[][..], &1.5f32.to_le_bytes()[..])], &options)
        .unwrap();
    let file = SafetensorsFile::open(&path, FileAccess::Read).unwrap();
    assert_eq!(file.header().metadata()["a"], "\"1\"");
    let scalar = file.tensor("s").unwrap();
    assert_eq!((scalar.shape(), scalar.elements()), (&[][..], 1));
    assert_eq!(file.read(scalar).unwrap().as_slice(), 1.5f32.to_le_bytes());
    let missing = file.tensor("x").unwrap_err().to_string();
    assert!(missing.ends_with("no tensor \"x\"; the tensors are s"), "{missing}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn chunks_of_a_table_give_the_file_of_the_whole_table(
        lengths in draw_lengths(), mut cuts in prop::collection::vec(0usize..12, 0..4)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let table = table_from(&lengths);
        cuts.push(0);
        cuts.push(table.num_rows());
        cuts.sort_unstable();
        let mut w = create_writer(dir.path(), &table);
        for c in cuts.windows(2) {
            let end = c[1].min(table.num_rows());
            let start = c[0].min(end);
            w.write(&table.slice(start, end - start).unwrap()).unwrap();
        }
        w.finish().unwrap();
        prop_assert_eq!(std::fs::read(dir.path().join("t.nrt")).unwrap(), bytes_of(&table));
    }
}
