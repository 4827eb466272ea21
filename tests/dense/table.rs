//! `RaggedTable::to_dense`, compared with results of the Python library `nested_ragged_tensors`,
//! and its options.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, StringArray, UInt8Array,
    UInt16Array, new_empty_array,
};
use arrow::buffer::Buffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde_json::Value;
use serrate::Error;
use serrate::dense::{
    AxisSize, BufferPool, DType, DenseDisplay, DenseOptions, DenseSpec, DenseTensor, PaddingSide,
    TableDenseOptions,
};
use serrate::table::RaggedTable;

/// Converts numbers and booleans of JSON to an Arrow array of the type `dtype`.
fn make_array(values: &[&Value], dtype: &str) -> ArrayRef {
    let dtype: DType = dtype.parse().unwrap();
    if dtype == DType::Bool {
        return Arc::new(values.iter().map(|v| v.as_bool()).collect::<BooleanArray>());
    }
    if dtype.is_integer() {
        let wide: Int64Array = values.iter().map(|v| v.as_i64()).collect();
        return cast(&wide, &dtype.to_arrow()).unwrap();
    }
    let number = |v: &Value| if v == "NaN" { f64::NAN } else { v.as_f64().unwrap() };
    let wide = Float64Array::from_iter_values(values.iter().map(|v| number(v)));
    cast(&wide, &dtype.to_arrow()).unwrap()
}

/// Returns the lengths of the lists on each level of nested lists, and their leaves. The first
/// element decides whether a level consists of lists.
fn list_levels(value: &Value) -> (Vec<Vec<usize>>, Vec<&Value>) {
    let mut elements: Vec<&Value> = value.as_array().unwrap().iter().collect();
    let mut levels = Vec::new();
    while elements.first().is_some_and(|v| v.is_array()) {
        levels.push(elements.iter().map(|v| v.as_array().unwrap().len()).collect());
        elements = elements.iter().flat_map(|v| v.as_array().unwrap()).collect();
    }
    (levels, elements)
}

fn make_table(input: &Value, expect: &Value) -> RaggedTable {
    let mut axes: Vec<Vec<usize>> = Vec::new();
    let mut columns = Vec::new();
    for (name, nested) in input["data"].as_object().unwrap() {
        let (lengths, leaves) = list_levels(nested);
        // Columns get the types of the vectors, because this test is not about type inference.
        let dtype = [&input["schema"][name], &expect[name]["dtype"]];
        let dtype = dtype.iter().find_map(|v| v.as_str()).unwrap_or("int64");
        columns.push((name.clone(), lengths.len(), make_array(&leaves, dtype)));
        if lengths.len() > axes.len() {
            axes = lengths;
        }
    }
    let mut builder = RaggedTable::builder();
    for lengths in axes {
        builder = builder.lengths(lengths).unwrap();
    }
    for (name, axis, values) in columns {
        builder = builder.column(name, axis, values);
    }
    builder.build().unwrap()
}

fn parse_tensor(t: &Value) -> DenseTensor {
    let shape: Vec<usize> =
        t["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let data: Vec<&Value> = t["data"].as_array().unwrap().iter().collect();
    let flat = make_array(&data, t["dtype"].as_str().unwrap());
    DenseTensor::try_from_arrow(&flat).unwrap().reshape(shape).unwrap()
}

#[test]
fn to_dense_passes_the_cases_of_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/nrt/to_dense.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 14);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let side = case["args"]["padding_side"].as_str().unwrap_or("right").parse::<PaddingSide>();
        let Ok(side) = side else {
            assert!(case.get("error").is_some(), "{name}");
            continue;
        };
        let expect = &case["expect"];
        let options = DenseOptions { side, ..Default::default() };
        let got = make_table(&case["input"], expect).to_dense(&options).unwrap();
        let mut got: BTreeMap<String, DenseTensor> = got.into_iter().collect();
        for (key, want) in expect.as_object().unwrap() {
            assert_eq!(got.remove(key).as_ref(), Some(&parse_tensor(want)), "{name}: {key}");
        }
        // A column without values, which the Python library omits, has an axis of size 0.
        for (key, t) in got {
            assert_eq!(t.num_elements(), 0, "{name}: {key}");
            assert!(t.shape().contains(&0));
        }
    }
}

/// Builds a table of two patients with 3 and 1 events. The events have 2, 4, 1 and 3 codes.
fn make_patients() -> RaggedTable {
    RaggedTable::builder()
        .lengths([3, 1])
        .unwrap()
        .lengths([2, 4, 1, 3])
        .unwrap()
        .column("age", 0, Arc::new(UInt8Array::from(vec![71, 38])))
        .column("T", 1, Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5, 9.0])))
        .column("code", 2, Arc::new(UInt16Array::from_iter_values(1..=10)))
        .build()
        .unwrap()
}

fn name_tensors(tensors: &[(String, DenseTensor)]) -> Vec<(&str, DType, &[usize])> {
    tensors.iter().map(|(n, t)| (n.as_str(), t.dtype(), t.shape())).collect()
}

#[test]
fn tensors_are_the_columns_and_then_the_masks() {
    let dense = make_patients().to_dense(&DenseOptions::default()).unwrap();
    assert_eq!(
        name_tensors(&dense),
        [
            ("age", DType::U8, &[2][..]),
            ("T", DType::F32, &[2, 3]),
            ("code", DType::U16, &[2, 3, 4]),
            ("dim1/mask", DType::Bool, &[2, 3]),
            ("dim2/mask", DType::Bool, &[2, 3, 4]),
        ]
    );
}

#[test]
fn options_select_rows_columns_and_sizes_and_widen_tokens() {
    let options = TableDenseOptions {
        rows: Some(0..1),
        columns: Some(vec!["code".into(), "age".into()]),
        sizes: vec![AxisSize::AtMost(2), AxisSize::Exactly(5)],
        tokens_as_i64: true,
        dense: DenseOptions {
            side: PaddingSide::Left,
            pool: Some(BufferPool::default()),
            ..Default::default()
        },
        ..Default::default()
    };
    let dense = make_patients().to_dense_with(&options).unwrap();
    assert_eq!(
        name_tensors(&dense),
        [
            ("code", DType::I64, &[1, 2, 5][..]),
            ("age", DType::I64, &[1]),
            ("dim2/mask", DType::Bool, &[1, 2, 5]),
        ]
    );
    assert_eq!(dense[0].1.as_slice::<i64>().unwrap(), [0, 3, 4, 5, 6, 0, 0, 0, 0, 7]);
    assert_eq!(dense[2].1.as_slice::<u8>().unwrap(), [0, 1, 1, 1, 1, 0, 0, 0, 0, 1]);
    // Without given sizes, the longest lists of the selected rows decide, not those of the table.
    let options =
        TableDenseOptions { rows: Some(1..2), masks: false, ..TableDenseOptions::default() };
    let dense = make_patients().to_dense_with(&options).unwrap();
    assert_eq!(name_tensors(&dense)[2], ("code", DType::U16, &[1, 1, 3][..]));
    assert_eq!(dense.len(), 3);
    let none = TableDenseOptions { rows: Some(2..2), ..TableDenseOptions::default() };
    let dense = make_patients().to_dense_with(&none).unwrap();
    assert_eq!(name_tensors(&dense)[2], ("code", DType::U16, &[0, 0, 0][..]));
}

#[test]
fn columns_of_one_axis_have_one_shape() {
    // The tensors `a` and `b` have equal shapes, although only `a` has nulls.
    let table = RaggedTable::builder()
        .lengths([2, 0])
        .unwrap()
        .column("a", 1, Arc::new(Int64Array::from(vec![Some(1), None])))
        .column("b", 1, Arc::new(BooleanArray::from(vec![true, true])))
        .build()
        .unwrap();
    let fill = DenseOptions { fill: Some(1.into()), ..Default::default() };
    let dense = table.to_dense(&fill).unwrap();
    assert_eq!(dense[0].1.as_slice::<i64>().unwrap(), [1, 1, 1, 1]);
    assert_eq!(dense[1].1.as_slice::<u8>().unwrap(), [1, 1, 1, 1]);
    // Masks are padded with false, whatever the fill value is.
    assert_eq!(dense[2].1.as_slice::<u8>().unwrap(), [1, 1, 0, 0]);
}

/// Converts a table with `to_dense_into` to unaligned memory that was not cleared, and returns the
/// tensors.
fn convert_table(table: &RaggedTable, options: &TableDenseOptions) -> Vec<(String, DenseTensor)> {
    let specs = table.dense_specs(options).unwrap();
    let mut memory: Vec<Vec<u8>> = specs.iter().map(|s| vec![0xA5; s.nbytes() + 1]).collect();
    let mut pieces: Vec<&mut [u8]> = memory.iter_mut().map(|m| &mut m[1..]).collect();
    assert_eq!(table.to_dense_into(options, &mut pieces).unwrap(), specs);
    let tensor = |(spec, memory): (DenseSpec, Vec<u8>)| {
        assert_eq!(memory[0], 0xA5);
        let bytes = Buffer::from_vec(memory[1..].to_vec());
        (spec.name, DenseTensor::try_new(spec.dtype, spec.shape, bytes).unwrap())
    };
    specs.into_iter().zip(memory).map(tensor).collect()
}

#[test]
fn to_dense_into_writes_the_tensors_of_to_dense_with() {
    let table = with_nulls();
    let all = |sizes: Vec<AxisSize>, side, fill: Option<i64>| TableDenseOptions {
        dense: DenseOptions { side, fill: fill.map(Into::into), ..Default::default() },
        sizes,
        ..Default::default()
    };
    for side in [PaddingSide::Left, PaddingSide::Right] {
        for fill in [None, Some(1)] {
            for sizes in [
                vec![],
                vec![AxisSize::Exactly(2)],
                vec![AxisSize::Exactly(5), AxisSize::Exactly(1)],
            ] {
                let options = all(sizes, side, fill);
                assert_eq!(convert_table(&table, &options), table.to_dense_with(&options).unwrap());
                let tokens = TableDenseOptions { tokens_as_i64: true, masks: false, ..options };
                assert_eq!(convert_table(&table, &tokens), table.to_dense_with(&tokens).unwrap());
            }
        }
    }
    let row = table.index(&[1.into()]).unwrap();
    let options = TableDenseOptions::default();
    assert_eq!(convert_table(&row, &options), row.to_dense_with(&options).unwrap());
    // First too few slices, then one with a wrong length.
    let error = table.to_dense_into(&options, &mut []).unwrap_err().to_string();
    assert!(error.contains("0 output slice(s)") && error.contains("age, T, dim1/mask"), "{error}");
    let mut short: Vec<Vec<u8>> =
        table.dense_specs(&options).unwrap().iter().map(|s| vec![0; s.nbytes()]).collect();
    short[2].pop();
    let mut pieces: Vec<&mut [u8]> = short.iter_mut().map(Vec::as_mut_slice).collect();
    let error = table.to_dense_into(&options, &mut pieces).unwrap_err().to_string();
    assert!(error.contains("dim1/mask") && error.contains("needs 4"), "{error}");
}

/// Builds a table with the columns age: NULL, 38 and T: [1, NULL], [3].
fn with_nulls() -> RaggedTable {
    RaggedTable::builder()
        .lengths([2, 1])
        .unwrap()
        .lengths([1, 0, 2])
        .unwrap()
        .column("age", 0, Arc::new(UInt8Array::from(vec![None, Some(38)])))
        .column("T", 1, Arc::new(Float32Array::from(vec![Some(1.0), None, Some(3.0)])))
        .build()
        .unwrap()
}

#[test]
fn columns_with_nulls_get_a_validity_mask() {
    let dense = with_nulls().to_dense(&DenseOptions::default()).unwrap();
    let text: Vec<String> = dense.iter().map(|(n, t)| format!("{n}: {t}")).collect();
    assert_eq!(
        text,
        [
            "age: uint8[2] [0, 38]",
            "T: float32[2, 2] [[1.0, 0.0], [3.0, 0.0]]",
            "dim1/mask: bool[2, 2] [[true, true], [true, false]]",
            "age/valid: bool[2] [false, true]",
            "T/valid: bool[2, 2] [[true, false], [true, false]]",
        ]
    );
    let options = TableDenseOptions { masks: false, ..Default::default() };
    assert_eq!(with_nulls().to_dense_with(&options).unwrap().len(), 2);
    let clash = RaggedTable::builder()
        .column("x", 0, Arc::new(UInt8Array::from(vec![None, Some(1)])))
        .column("x/valid", 0, Arc::new(UInt8Array::from(vec![1, 1])))
        .build()
        .unwrap();
    let error = clash.to_dense(&DenseOptions::default()).unwrap_err().to_string();
    assert!(error.contains("\"x/valid\" has the name of a mask"), "{error}");
}

#[test]
fn errors_name_the_column() {
    let table = RaggedTable::builder()
        .lengths([1])
        .unwrap()
        .column("code", 1, Arc::new(StringArray::from(vec!["A"])))
        .column("dim1/mask", 1, Arc::new(Int64Array::from(vec![-1])))
        .build()
        .unwrap();
    let message = |o: &TableDenseOptions| table.to_dense_with(o).unwrap_err().to_string();
    let only = |name: &str| Some(vec![name.to_owned()]);
    let o = TableDenseOptions { columns: only("code"), ..Default::default() };
    let e = message(&o);
    assert!(e.contains("\"code\"") && e.contains("encode strings to integers"), "{e}");
    let o = TableDenseOptions { columns: only("dim1/mask"), ..Default::default() };
    assert!(message(&o).contains("rename"), "{}", message(&o));
    let to = DenseOptions { dtype: Some(DType::U8), ..Default::default() };
    let o = TableDenseOptions { dense: to, masks: false, ..o };
    assert!(message(&o).contains("\"dim1/mask\""), "{}", message(&o));
    let o = TableDenseOptions { columns: only("x"), ..Default::default() };
    assert!(matches!(table.to_dense_with(&o), Err(Error::NoSuchColumn { .. })));
    let o = TableDenseOptions { rows: Some(0..2), ..Default::default() };
    assert!(make_patients().to_dense_with(&o).is_ok());
    let o = TableDenseOptions { rows: Some(1..3), ..Default::default() };
    assert!(make_patients().to_dense_with(&o).is_err());
    let o = TableDenseOptions { sizes: vec![AxisSize::Longest; 3], ..Default::default() };
    assert!(make_patients().to_dense_with(&o).is_err());
}

#[test]
fn the_limit_counts_all_columns_and_masks() {
    // The tensors have these bytes: age 2, T 24, code 48, masks 6 and 24.
    let limit = |n| DenseOptions { limit: Some(n), ..Default::default() };
    assert!(make_patients().to_dense(&limit(104)).is_ok());
    match make_patients().to_dense(&limit(103)) {
        Err(Error::TooLarge { bytes: 104, limit: 103, hint, .. }) => {
            assert!(hint.contains("\"code\" is uint16 [2, 3, 4]"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn empty_lists_and_tables_without_columns_become_dense() {
    let table = RaggedTable::builder()
        .lengths([0, 0])
        .unwrap()
        .column("T", 1, new_empty_array(&DataType::Float32))
        .build()
        .unwrap();
    let dense = table.to_dense(&DenseOptions::default()).unwrap();
    assert_eq!(
        name_tensors(&dense),
        [("T", DType::F32, &[2, 0][..]), ("dim1/mask", DType::Bool, &[2, 0])]
    );
    let table = RaggedTable::builder().rows(3).build().unwrap();
    assert!(table.to_dense(&DenseOptions::default()).unwrap().is_empty());
}

#[test]
fn dense_results_are_shown_in_a_few_lines() {
    let values = Arc::new(Int64Array::from_iter_values(0..10_000));
    let table = RaggedTable::builder()
        .lengths(vec![100; 100])
        .unwrap()
        .column("x", 1, values)
        .build()
        .unwrap();
    let text = DenseDisplay(&table.to_dense(&DenseOptions::default()).unwrap()).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 12, "{text}");
    assert_eq!(lines[..2], ["x: int64[100, 100]", "  [0, 1, 2, …, 99]"]);
    assert_eq!(lines[5], "  … 96 more");
    assert_eq!(DenseDisplay(&[]).to_string(), "");
}
