//! Writes small files of every format that this project reads. A crate that includes this file must
//! import the core crate as `serrate`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serrate::Result;
use serrate::arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt16Array,
};
use serrate::arrow::buffer::NullBuffer;
use serrate::arrow::datatypes::{DataType, Field, UInt32Type};
use serrate::dense::{DType, DenseTensor};
use serrate::dok::{Dictionary, DokTensor, MapOptions};
use serrate::io::arrow_ipc::{self, IpcCompression, IpcForm, IpcWriteOptions};
use serrate::io::json::{JsonForm, JsonWriteOptions, write_json, write_ndjson};
use serrate::io::meds::Labels;
use serrate::io::nrt::{self, WriteOptions};
use serrate::io::parquet::{self, ParquetWriteOptions};
use serrate::io::safetensors::{SaveOptions, dense};
use serrate::io::{dictionary, dok};
use serrate::table::{Column, RaggedTable};

/// Returns a table with strings, dictionaries, floats and timestamps, null values, null lists and
/// empty lists.
pub(crate) fn mixed_table() -> Result<RaggedTable> {
    let codes: DictionaryArray<UInt32Type> =
        [Some("b"), None, Some("a"), Some("b"), Some("c"), Some("b")].into_iter().collect();
    let values = Float32Array::from(vec![None, Some(0.5), Some(-0.0), None, Some(1e9), None]);
    let lists = NullBuffer::from(vec![true, false, true, true]);
    let names = StringArray::from(vec![Some("x"), None, Some(""), Some("yz")]);
    let flags = BooleanArray::from(vec![true, false, true, true]);
    RaggedTable::builder()
        .lengths([3, 0, 0, 1])?
        .lengths([2, 0, 3, 1])?
        .column("name", 0, Arc::new(names))
        .column("flag", 1, Arc::new(flags))
        .column("code", 2, Arc::new(codes))
        .push(
            Column::new("value", 2, Arc::new(values))
                .with_list_nulls(vec![Some(lists.clone()), Some(lists)]),
        )
        .build()
}

/// Returns a table whose columns all have types that `.nrt` can hold.
pub(crate) fn numbers_table() -> Result<RaggedTable> {
    RaggedTable::builder()
        .lengths([2, 0, 1])?
        .lengths([1, 0, 3])?
        .column("subject_id", 0, Arc::new(Int64Array::from(vec![5, 6, 7])))
        .column("flag", 1, Arc::new(BooleanArray::from(vec![true, false, true])))
        .column("code", 2, Arc::new(UInt16Array::from(vec![1, 2, 3, 65_535])))
        .column("value", 2, Arc::new(Float32Array::from(vec![0.5, f32::NAN, -1.0, 3.0])))
        .build()
}

fn write_tensors(path: &Path) -> Result<()> {
    let numbers = DenseTensor::from_vec([2, 3], vec![1i16, 2, 3, 4, 5, 6])?;
    let flags = DenseTensor::from_bools([2], [true, false])?;
    dense::write(path, [("numbers", &numbers), ("flags", &flags)], &SaveOptions::default())
}

fn write_sparse_tensor(path: &Path) -> Result<()> {
    let mut tensor = DokTensor::new([1 << 40, 7], DType::F32)?;
    for (row, value) in [(0, 0.5), (12_345, 1.5), (1 << 30, 2.5)] {
        tensor.set_at(&[row, 3], value)?;
    }
    dok::write(path, &tensor, &SaveOptions::default())
}

fn write_dictionary(path: &Path) -> Result<()> {
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, false));
    let keys = vec![field("code", DataType::Utf8), field("unit", DataType::Int64)];
    let value = field("mean", DataType::Float32);
    let mut words = Dictionary::new(keys, value, MapOptions::default())?;
    let codes: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc", "a"]));
    let units: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2]));
    let means: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]));
    words.set(&[codes, units], &means)?;
    dictionary::write(path, &words, &SaveOptions::default())
}

fn write_arrow(path: &Path, form: IpcForm, compression: IpcCompression) -> Result<()> {
    let options = IpcWriteOptions { form, compression, ..IpcWriteOptions::default() };
    arrow_ipc::write(path, &mixed_table()?, &options)
}

fn write_labels(path: &Path) -> Result<()> {
    let ids = Int64Array::from(vec![1, 1, 4]);
    let times = TimestampMicrosecondArray::from(vec![0, 5, -1]);
    let labels = Labels::try_new(ids, times, vec![])?.to_batch()?;
    let table = RaggedTable::try_from_batch(&labels)?;
    parquet::write(path, &table, &ParquetWriteOptions::default())
}

fn write_json_as(path: &Path, form: JsonForm) -> Result<()> {
    write_json(path, &mixed_table()?, &JsonWriteOptions { form, overwrite: false })
}

type Write = fn(&Path) -> Result<()>;

/// Names of the files, whose extensions determine the format, and the functions that write them.
pub(crate) const SMALL_FILES: &[(&str, Write)] = &[
    ("table.nrt", |path| nrt::write(path, &numbers_table()?, &WriteOptions::default())),
    ("tensors.safetensors", write_tensors),
    ("sparse.safetensors", write_sparse_tensor),
    ("dictionary.safetensors", write_dictionary),
    ("plain.arrow", |path| write_arrow(path, IpcForm::File, IpcCompression::None)),
    ("zstd.arrow", |path| write_arrow(path, IpcForm::File, IpcCompression::Zstd)),
    ("plain.arrows", |path| write_arrow(path, IpcForm::Stream, IpcCompression::None)),
    ("lz4.arrows", |path| write_arrow(path, IpcForm::Stream, IpcCompression::Lz4)),
    ("table.parquet", |path| {
        parquet::write(path, &mixed_table()?, &ParquetWriteOptions::default())
    }),
    ("labels.parquet", write_labels),
    ("columns.json", |path| write_json_as(path, JsonForm::Columns)),
    ("records.json", |path| write_json_as(path, JsonForm::Records)),
    ("rows.ndjson", |path| write_ndjson(path, &mixed_table()?, &JsonWriteOptions::default())),
];

/// Writes the file `name` of [`SMALL_FILES`] in `folder` and returns its bytes.
pub(crate) fn small_file(folder: &Path, name: &str) -> Vec<u8> {
    let (_, write) = SMALL_FILES
        .iter()
        .find(|(found, _)| *found == name)
        .unwrap_or_else(|| panic!("SMALL_FILES has no file {name}"));
    let path = folder.join(name);
    write(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
    fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}"))
}
