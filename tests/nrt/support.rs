//! Files built byte by byte, tables from the JSON of the conformance vectors, and random tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float16Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Float64Type};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use serrate::io::nrt::{self, WriteOptions};
use serrate::io::safetensors::{FileAccess, SafetensorsFile};
use serrate::table::RaggedTable;

/// Returns the folder of the conformance vectors.
pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// Reads the cases of a file of the vectors.
pub(crate) fn read_cases(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(vectors().join(file)).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    match all["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("{other}"),
    }
}

/// Returns a safetensors file with the given header and data, whether they fit or not.
pub(crate) fn file_of(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Returns a safetensors file of tensors, given by name, type, shape and bytes, in this order.
pub(crate) fn file_with(tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let (mut map, mut data) = (Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let start = data.len();
        data.extend(bytes);
        let info = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        map.insert((*name).into(), info);
    }
    file_of(&Value::Object(map).to_string(), &data)
}

/// Returns integers as little-endian bytes.
pub(crate) fn i64_bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn read_numbers(data: &Value) -> impl Iterator<Item = f64> + '_ {
    data.as_array().unwrap().iter().map(|v| match v.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(other) => panic!("{other}"),
        None => v.as_f64().unwrap(),
    })
}

fn read_integers<T: TryFrom<i128, Error: std::fmt::Debug>>(
    data: &Value,
) -> impl Iterator<Item = T> {
    let wide = |v: &Value| v.as_i64().map_or_else(|| v.as_u64().unwrap().into(), i128::from);
    data.as_array().unwrap().iter().map(move |v| T::try_from(wide(v)).unwrap())
}

/// Returns the values of a tensor of the vectors as an Arrow array.
pub(crate) fn array_of(tensor: &Value) -> ArrayRef {
    let data = &tensor["data"];
    match tensor["dtype"].as_str().unwrap() {
        "bool" => {
            let bits = data.as_array().unwrap().iter().map(|b| b.as_bool().unwrap());
            Arc::new(BooleanArray::from(bits.collect::<Vec<_>>()))
        }
        "uint8" => Arc::new(UInt8Array::from_iter_values(read_integers(data))),
        "uint16" => Arc::new(UInt16Array::from_iter_values(read_integers(data))),
        "uint32" => Arc::new(UInt32Array::from_iter_values(read_integers(data))),
        "uint64" => Arc::new(UInt64Array::from_iter_values(read_integers(data))),
        "int8" => Arc::new(Int8Array::from_iter_values(read_integers(data))),
        "int16" => Arc::new(Int16Array::from_iter_values(read_integers(data))),
        "int32" => Arc::new(Int32Array::from_iter_values(read_integers(data))),
        "int64" => Arc::new(Int64Array::from_iter_values(read_integers(data))),
        "float16" => {
            Arc::new(Float16Array::from_iter_values(read_numbers(data).map(half::f16::from_f64)))
        }
        #[allow(clippy::cast_possible_truncation)]
        "float32" => Arc::new(Float32Array::from_iter_values(read_numbers(data).map(|v| v as f32))),
        "float64" => Arc::new(Float64Array::from_iter_values(read_numbers(data))),
        other => panic!("{other}"),
    }
}

/// Builds a table from the member `tensors` of a case.
pub(crate) fn table_of(tensors: &Value) -> RaggedTable {
    let tensors = tensors.as_object().unwrap();
    let mut builder = RaggedTable::builder();
    for axis in 1.. {
        let Some(bounds) = tensors.get(&format!("dim{axis}/bounds")) else { break };
        builder = builder.bounds(read_integers::<i64>(&bounds["data"])).unwrap();
    }
    for (name, tensor) in tensors {
        let (axis, key) = name.strip_prefix("dim").unwrap().split_once('/').unwrap();
        if key != "bounds" {
            builder = builder.column(key, axis.parse().unwrap(), array_of(tensor));
        }
    }
    builder.build().unwrap()
}

fn dtype_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "bool",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::Float16 => "float16",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        other => panic!("{other}"),
    }
}

fn json_of(values: &ArrayRef) -> Vec<Value> {
    if let Some(bits) = values.as_boolean_opt() {
        return bits.values().iter().map(Value::Bool).collect();
    }
    if values.data_type().is_integer() {
        let wide = arrow::compute::cast(values, &DataType::Utf8).unwrap();
        let texts = wide.as_string::<i32>().iter();
        return texts.map(|t| serde_json::from_str(t.unwrap()).unwrap()).collect();
    }
    let wide = arrow::compute::cast(values, &DataType::Float64).unwrap();
    let special = |v: f64| if v.is_nan() { json!("NaN") } else { json!(v) };
    wide.as_primitive::<Float64Type>().values().iter().map(|v| special(*v)).collect()
}

/// Returns the tensors of a table in the form of the member `tensors` of a case.
pub(crate) fn tensors_of(table: &RaggedTable) -> Map<String, Value> {
    let mut tensors = Map::new();
    for (i, axis) in table.axes().iter().enumerate() {
        let layout = axis.layout();
        let bounds: Vec<_> = (0..layout.lists()).map(|l| layout.range(l).end).collect();
        let tensor = json!({"dtype": "int64", "shape": [bounds.len()], "data": bounds});
        tensors.insert(format!("dim{}/bounds", i + 1), tensor);
    }
    for c in table.columns() {
        let (shape, data) = ([c.values().len()], json_of(c.values()));
        let tensor = json!({"dtype": dtype_name(c.data_type()), "shape": shape, "data": data});
        tensors.insert(format!("dim{}/{}", c.axis(), c.name()), tensor);
    }
    tensors
}

/// Returns the tensors of a table of one row as those of its events: axis 0 is dropped, and every
/// other axis moves outwards by one.
pub(crate) fn shift_tensors(tensors: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, tensor) in tensors {
        let (axis, key) = name.strip_prefix("dim").unwrap().split_once('/').unwrap();
        let axis: usize = axis.parse().unwrap();
        if axis > 0 && name != "dim1/bounds" {
            out.insert(format!("dim{}/{key}", axis - 1), tensor);
        }
    }
    out
}

/// Returns the names of the tensors of a file, in the order of their data.
pub(crate) fn names_in(path: &Path) -> Vec<String> {
    let file = SafetensorsFile::open(path, FileAccess::Read).unwrap();
    file.tensors().iter().map(|t| t.name().to_owned()).collect()
}

/// Returns the bytes of the `.nrt` file of a table.
pub(crate) fn bytes_of(table: &RaggedTable) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.nrt");
    nrt::write(&path, table, &WriteOptions::default()).unwrap();
    std::fs::read(path).unwrap()
}

/// Builds a table with two levels of lists of the given lengths, and columns of many types on all
/// axes.
pub(crate) fn table_from(lengths: &[Vec<usize>]) -> RaggedTable {
    let events: Vec<usize> = lengths.iter().map(Vec::len).collect();
    let sizes: Vec<usize> = lengths.iter().flatten().copied().collect();
    let (rows, n, m) = (events.len(), sizes.len(), sizes.iter().sum::<usize>());
    let ids = (0..rows).map(|i| i64::try_from(i).unwrap() - 3);
    let times = (0..n).map(|i| f64::from(u32::try_from(i).unwrap()) / 7.0);
    let codes = (0..m).map(|i| u16::try_from(i % 60_000).unwrap());
    let values = (0..m).map(|i| if i % 5 == 0 { f32::NAN } else { i as f32 });
    let flags: Vec<bool> = (0..m).map(|i| i % 3 == 0).collect();
    RaggedTable::builder()
        .lengths(events)
        .unwrap()
        .lengths(sizes)
        .unwrap()
        .column("subject_id", 0, Arc::new(Int64Array::from_iter_values(ids)))
        .column("time", 1, Arc::new(Float64Array::from_iter_values(times)))
        .column("code", 2, Arc::new(UInt16Array::from_iter_values(codes)))
        .column("flag", 2, Arc::new(BooleanArray::from(flags)))
        .column("numeric_value", 2, Arc::new(Float32Array::from_iter_values(values)))
        .build()
        .unwrap()
}

/// Draws list lengths for [`table_from`].
pub(crate) fn draw_lengths() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(0usize..5, 0..6), 0..12)
}
