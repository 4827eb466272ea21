//! Tables as JSON, in columns and in records; inferred types, compared with those of
//! nested_ragged_tensors; errors.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray,
    Float16Array, Float32Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, TimeUnit};
use proptest::prelude::*;
use serde_json::{Value, json};
use serrate::io::json::{
    JsonForm, JsonOptions, JsonWriteOptions, NdjsonReader, NdjsonWriter, read_json, read_ndjson,
    write_json, write_ndjson,
};
use serrate::table::RaggedTable;
use serrate::{Error, Result};

use crate::model::{Model, N, draw_models};

fn read_value(value: &Value) -> Result<RaggedTable> {
    RaggedTable::from_json(value, &JsonOptions::default())
}

fn read_as(value: &Value, column: &str, t: DataType) -> Result<RaggedTable> {
    RaggedTable::from_json(value, &JsonOptions::default().with_column(column, t))
}

fn type_of(column: Value) -> DataType {
    read_value(&json!({"x": column})).unwrap().column("x").unwrap().data_type().clone()
}

fn to_value(n: &N) -> Value {
    match n {
        N::Null => Value::Null,
        N::Leaf(x) => (*x).into(),
        N::List(list) => list.iter().map(to_value).collect(),
    }
}

/// Returns options that declare the types of the columns of `model`, because the depth of a column
/// whose lists are all empty cannot be inferred.
fn declare_axes(model: &Model) -> JsonOptions {
    model
        .columns
        .iter()
        .fold(JsonOptions { batch_rows: 2, ..Default::default() }, |o, (n, axis, _)| {
            o.with_column(n, serrate::array::list_of(*axis, DataType::Int64))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn tables_are_read_back_from_both_forms((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt);
        let options = declare_axes(&model);
        let columns = table.to_json(JsonForm::Columns).unwrap();
        let to_member = |(name, _, rows): &(String, usize, Vec<N>)| {
            (name.clone(), rows.iter().map(to_value).collect::<Value>())
        };
        let expected: Value = Value::Object(model.columns.iter().map(to_member).collect());
        prop_assert_eq!(&columns, &expected);
        let records = table.to_json(JsonForm::Records).unwrap();
        for (i, record) in records.as_array().unwrap().iter().enumerate() {
            for (name, _, rows) in &model.columns {
                prop_assert_eq!(&record[name], &to_value(&rows[i]));
            }
        }
        prop_assert_eq!(records.as_array().unwrap().len(), model.rows);
        for form in [&columns, &records] {
            prop_assert_eq!(&RaggedTable::from_json(form, &options).unwrap(), &table);
            let text = serde_json::to_vec_pretty(form).unwrap();
            prop_assert_eq!(&RaggedTable::from_json_text(&text, &options).unwrap(), &table);
        }
        // NDJSON is read in tables of two rows.
        let mut writer = NdjsonWriter::new(Vec::new());
        writer.write(&table).unwrap();
        let text = writer.finish().unwrap();
        prop_assert_eq!(text.iter().filter(|b| **b == b'\n').count(), model.rows);
        let parts: Vec<RaggedTable> =
            NdjsonReader::new(&text[..], options.clone()).collect::<Result<_>>().unwrap();
        prop_assert_eq!(parts.len(), model.rows.div_ceil(2).max(1));
        prop_assert_eq!(&RaggedTable::concat(&parts).unwrap(), &table);
        prop_assert_eq!(&NdjsonReader::new(&text[..], options).read_all().unwrap(), &table);
    }

    #[test]
    fn floats_are_read_back_exactly(bits in proptest::collection::vec(any::<(u64, u32)>(), 1..20)) {
        let table = RaggedTable::builder()
            .column("d", 0, Arc::new(Float64Array::from_iter_values(bits.iter().map(|b| f64::from_bits(b.0)))))
            .column("s", 0, Arc::new(Float32Array::from_iter_values(bits.iter().map(|b| f32::from_bits(b.1)))))
            .build()
            .unwrap();
        let options = JsonOptions::default()
            .with_column("d", DataType::Float64)
            .with_column("s", DataType::Float32);
        let mut writer = NdjsonWriter::new(Vec::new());
        writer.write(&table).unwrap();
        let back = NdjsonReader::new(&writer.finish().unwrap()[..], options.clone()).read_all().unwrap();
        let again = RaggedTable::from_json(&table.to_json(JsonForm::Columns).unwrap(), &options).unwrap();
        for t in [back, again] {
            let d = t.column("d").unwrap().values().as_primitive::<Float64Type>().clone();
            let s = t.column("s").unwrap().values().as_primitive::<Float32Type>().clone();
            for (i, (a, b)) in bits.iter().enumerate() {
                let (a, b) = (f64::from_bits(*a), f32::from_bits(*b));
                prop_assert!(d.value(i).to_bits() == a.to_bits() || (a.is_nan() && d.value(i).is_nan()), "{a:?}");
                prop_assert!(s.value(i).to_bits() == b.to_bits() || (b.is_nan() && s.value(i).is_nan()), "{b:?}");
            }
        }
    }

    #[test]
    fn readers_do_not_panic_on_any_text(text in "[\\[\\]{},:\"\\\\a0-9.eEu+ntrfl -]{0,40}") {
        let _ = RaggedTable::from_json_text(text.as_bytes(), &JsonOptions::default());
        let _ = NdjsonReader::new(text.as_bytes(), JsonOptions::default()).read_all();
    }

    #[test]
    fn text_and_parsed_values_give_the_same_columns(text in "\\[[\\[\\]0-9.eE,n\\\\\"u -]{0,12}\\]") {
        // The reader of text and the reader of `serde_json::Value` accept the same columns.
        let whole = format!("{{\"x\": {text}}}");
        if let Ok(tree) = serde_json::from_str::<Value>(&whole) {
            let a = read_value(&tree).map_err(|e| e.to_string());
            let b = RaggedTable::from_json_text(whole.as_bytes(), &JsonOptions::default());
            if holds_ambiguous_number(&tree["x"]) {
                prop_assert!(a.is_ok() <= b.is_ok() || !whole.contains(['e', 'E', '.']), "{}", whole);
            } else {
                prop_assert_eq!(a.is_ok(), b.is_ok(), "{}", whole);
            }
        } else {
            prop_assert!(RaggedTable::from_json_text(whole.as_bytes(), &JsonOptions::default()).is_err());
        }
    }
}

/// Returns whether a `Value` contains a number that serde_json parses both from a float (`1E20`)
/// and from an integer of more than 64 bits.
fn holds_ambiguous_number(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(holds_ambiguous_number),
        Value::Number(n) => {
            n.as_i128().is_none() && n.as_f64().is_some_and(|x| (9.2e18..1e30).contains(&x.abs()))
        }
        _ => false,
    }
}

#[test]
fn large_floats_in_values_are_refused_and_in_text_are_read() {
    let from_text =
        |text: &str| RaggedTable::from_json_text(text.as_bytes(), &JsonOptions::default());
    let float = from_text(r#"{"x": [1E20]}"#).unwrap();
    assert_eq!(float.column("x").unwrap().data_type(), &DataType::Float32);
    assert!(from_text(r#"{"x": [100000000000000000000]}"#).is_err());
    assert!(read_value(&json!({"x": [1E20]})).is_err());
    assert!(read_value(&json!({"x": [1E20, 0.5]})).is_ok());
    assert!(read_as(&json!({"x": [1E20]}), "x", DataType::Float64).is_ok());
}

fn read_cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/nrt").join(file);
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all["cases"].as_array().unwrap().clone()
}

fn parse_dtype(name: &str) -> DataType {
    match name {
        "bool" => DataType::Boolean,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "float16" => DataType::Float16,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        other => panic!("{other}"),
    }
}

/// Returns JSON text for a value of the test vectors, which write strings and integers of more than
/// 64 bits as objects with a key `$str` or `$int`.
fn unwrap_text(v: &Value) -> String {
    match v {
        Value::Object(o) if o.contains_key("$int") => o["$int"].as_str().unwrap().to_owned(),
        Value::Object(o) if o.contains_key("$str") => o["$str"].to_string(),
        Value::Object(o) => {
            let members = o.iter().map(|(k, v)| format!("{}:{}", json!(k), unwrap_text(v)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(unwrap_text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn inferred_types_equal_those_of_nested_ragged_tensors() {
    let all = read_cases("infer_dtype.json");
    assert!(all.len() >= 18);
    for case in all {
        let name = case["name"].as_str().unwrap();
        let text = format!("{{\"x\": {}}}", unwrap_text(&case["input"]["values"]));
        let table = RaggedTable::from_json_text(text.as_bytes(), &JsonOptions::default());
        if case.get("error").is_some() {
            assert!(table.is_err(), "{name}");
            continue;
        }
        let table = table.unwrap();
        let x = table.column("x").unwrap();
        assert_eq!(
            x.data_type(),
            &parse_dtype(case["expect"]["dtype"].as_str().unwrap()),
            "{name}"
        );
        let stored = RaggedTable::from_json(
            &json!({"x": case["expect"]["stored"]["data"]}),
            &JsonOptions::default().with_column("x", x.data_type().clone()),
        );
        assert_eq!(
            stored.unwrap().to_json(JsonForm::Columns).unwrap(),
            table.to_json(JsonForm::Columns).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn raw_tables_equal_those_of_nested_ragged_tensors() {
    let all = read_cases("construct.json");
    assert!(all.len() >= 13);
    for case in all {
        let name = case["name"].as_str().unwrap();
        let mut options = JsonOptions::default();
        for (column, t) in case["input"]["schema"].as_object().into_iter().flatten() {
            options = options.with_column(column, parse_dtype(t.as_str().unwrap()));
        }
        let text = unwrap_text(&case["input"]["data"]);
        let table = RaggedTable::from_json_text(text.as_bytes(), &options);
        if case.get("error").is_some() {
            assert!(table.is_err(), "{name}");
            continue;
        }
        let table = table.unwrap();
        let tensors = case["expect"]["tensors"].as_object().unwrap();
        for (tensor, expected) in tensors {
            let (dim, key) = tensor.split_once('/').unwrap();
            let axis: usize = dim.strip_prefix("dim").unwrap().parse().unwrap();
            if key == "bounds" {
                let layout = table.layout(axis).unwrap();
                let mut end = 0;
                let bounds: Vec<usize> = (0..layout.lists())
                    .map(|i| {
                        end += layout.length(i);
                        end
                    })
                    .collect();
                assert_eq!(json!(bounds), expected["data"], "{name} {tensor}");
                continue;
            }
            let column = table.column(key).unwrap();
            assert_eq!(column.axis(), axis, "{name} {tensor}");
            assert_eq!(
                column.data_type(),
                &parse_dtype(expected["dtype"].as_str().unwrap()),
                "{name}"
            );
            let flat = RaggedTable::builder().column("x", 0, column.values().clone()).build();
            let stored = json!({"x": expected["data"]});
            let stored = read_as(&stored, "x", column.data_type().clone()).unwrap();
            assert_eq!(
                flat.unwrap().to_json(JsonForm::Columns).unwrap(),
                stored.to_json(JsonForm::Columns).unwrap(),
                "{name} {tensor}"
            );
        }
        assert_eq!(
            table.num_rows(),
            usize::try_from(case["expect"]["len"].as_u64().unwrap()).unwrap()
        );
    }
}

#[test]
fn integers_and_floats_have_different_types() {
    assert_eq!(type_of(json!([1, 2])), DataType::UInt8);
    assert_eq!(type_of(json!([1, 2.0])), DataType::Float32);
    assert_eq!(type_of(json!([1e0])), DataType::Float32);
    assert_eq!(type_of(json!([true, 300])), DataType::UInt16);
    assert_eq!(type_of(json!([true, -1])), DataType::Int8);
    assert_eq!(type_of(json!([false, 0.5])), DataType::Float32);
    assert_eq!(type_of(json!([u64::MAX, true])), DataType::UInt64);
    assert_eq!(type_of(json!([1u64 << 63, -1])), DataType::Float32);
    assert_eq!(type_of(json!([i64::MIN, 1])), DataType::Int64);
    assert_eq!(type_of(json!([null, 7, null])), DataType::UInt8);
    assert_eq!(type_of(json!(["a", null])), DataType::Utf8);
    assert_eq!(type_of(json!(["NaN", "a"])), DataType::Utf8);
    assert_eq!(type_of(json!(["NaN", null, 1])), DataType::Float32);
    // `Value` holds 18446744073709551616 as a float, which may have been an integer, so it is
    // refused.
    let big: Value = serde_json::from_str("[1, 18446744073709551616]").unwrap();
    assert!(read_value(&json!({"x": big})).unwrap_err().to_string().contains("more than 64 bits"));
    assert_eq!(type_of(json!([0.5, 2e20])), DataType::Float32);
    let texts = read_value(&json!({"x": ["NaN", "a", "-Infinity"]})).unwrap();
    assert!(texts.column("x").unwrap().values().as_string::<i32>().iter().flatten().eq([
        "NaN",
        "a",
        "-Infinity"
    ]));
}

#[test]
fn errors_name_the_path() {
    let path = |v: Value| match read_value(&v).unwrap_err() {
        Error::DepthVaries { path, .. } => format!("depth {path}"),
        Error::ValueType { path, .. } => format!("type {path}"),
        other => other.to_string(),
    };
    assert_eq!(path(json!({"code": [[1], [2], [], [3, [4]]]})), "depth code[3][1]");
    assert_eq!(path(json!({"code": [[[1]], [[], 2]]})), "depth code[1][1]");
    assert_eq!(path(json!({"code": [[[]], [[1], [2, [3]]]]})), "depth code[1][1][1]");
    assert_eq!(path(json!({"code": [[1, 2], [3, "x"]]})), "type code[1][1]");
    assert_eq!(path(json!({"code": ["x", 1]})), "type code[1]");
    assert_eq!(path(json!({"code": [1, {"a": 1}]})), "type code[1]");
    assert_eq!(path(json!({"code": 5})), "type code");
    assert_eq!(path(json!([{"a": 1}, 3])), "type [1]");
    let deep = (0..100).fold(json!(1), |v, _| json!([v]));
    assert!(path(json!({"x": deep})).starts_with("type x[0]"));

    let declared = |v: Value, t: DataType| match read_as(&v, "x", t).unwrap_err() {
        Error::ValueType { path, expected, found } => format!("{path}: {expected} not {found}"),
        other => other.to_string(),
    };
    assert_eq!(
        declared(json!({"x": [[1], ["a"]]}), DataType::Float32),
        "x[1][0]: Float32 not the string \"a\""
    );
    assert_eq!(
        declared(json!({"x": [[1], [2, 300]]}), DataType::UInt8),
        "x[1][1]: UInt8 not the number 300"
    );
    assert_eq!(declared(json!({"x": [-1]}), DataType::UInt64), "x[0]: UInt64 not the number -1");
    assert_eq!(
        declared(json!({"x": [1e39]}), DataType::Float32),
        "x[0]: Float32 not the number 1e39"
    );
    assert_eq!(declared(json!({"x": [1]}), DataType::Utf8), "x[0]: Utf8 not the number 1");
    assert_eq!(declared(json!({"x": [2]}), DataType::Boolean), "x[0]: Boolean not the number 2");
    let day = DataType::Date32;
    assert_eq!(
        declared(json!({"x": [[], ["2020-01-31", null, "2020-02-31"]]}), day),
        "x[1][2]: Date32 not \"2020-02-31\""
    );
    assert!(matches!(
        read_as(&json!({"x": [[1], 2]}), "x", DataType::new_list(DataType::Int8, true)),
        Err(Error::DepthVaries { path, .. }) if path == "x[1]"
    ));

    let text = |t: &str| {
        RaggedTable::from_json_text(t.as_bytes(), &JsonOptions::default()).unwrap_err().to_string()
    };
    assert!(
        text("{\"x\": [1,\n 2,, 3]}")
            .starts_with("line 2, column 4: expected a JSON value (an object, a list, a string, a number, true, false or null), found ','"),
        "{}",
        text("{\"x\": [1,\n 2,, 3]}")
    );
    assert!(text("{\"x\": [1], \"x\": [2]}").contains("occurs twice"));
    assert!(text("{\"x\": [01]}").contains("leading zero"));
    assert!(text("{\"x\": [1]} 2").contains("the end of the input"));
    assert!(text("[{\"a\": 1, \"a\": 2}]").contains("record 0 has the key \"a\" twice"));
    assert!(text("3").contains("an object of columns or a list of records"));

    let lines = "{\"a\": [1]}\n\n{\"a\": [1, \"x\"]}\n{\"a\": oops}\n";
    let mut reader =
        NdjsonReader::new(lines.as_bytes(), JsonOptions { batch_rows: 1, ..Default::default() });
    assert_eq!(reader.next().unwrap().unwrap().num_rows(), 1);
    assert!(
        matches!(reader.next().unwrap(), Err(Error::ValueType { path, .. }) if path == "a[1][1]")
    );
    assert!(reader.next().is_none());
    let broken =
        NdjsonReader::new("{}\n{\"a\": oops}".as_bytes(), JsonOptions::default()).read_all();
    assert!(broken.unwrap_err().to_string().starts_with("line 2, column 7"));
}

#[test]
fn outer_lengths_reserved_names_and_empty_columns_are_checked() {
    let text = read_value(&json!({"a": [1, 2, 3], "b": [[1], [2]]})).unwrap_err().to_string();
    assert!(
        text.contains("\"a\" and \"b\" differ in list lengths on axis 0")
            && text.contains("3 element(s)"),
        "{text}"
    );
    for name in ["bounds", "mask"] {
        let text = read_value(&json!({name: [1]})).unwrap_err().to_string();
        assert!(text.contains(name) && text.contains("is reserved"), "{text}");
    }
    for empty in [json!([]), json!([[], []]), json!([null]), json!([[null], []])] {
        let text = read_value(&json!({"x": empty.clone()})).unwrap_err().to_string();
        assert!(text.contains("\"x\" has no values to infer a type from"), "{text}");
        let table = read_as(&json!({"x": empty}), "x", DataType::Int16).unwrap();
        assert_eq!(table.column("x").unwrap().data_type(), &DataType::Int16);
    }
    let lists = DataType::new_list(DataType::new_list(DataType::Int16, true), true);
    let table = read_as(&json!({"x": [null, []]}), "x", lists).unwrap();
    assert_eq!(table.array("x").unwrap().ndim(), 3);
    assert_eq!(table.to_json(JsonForm::Columns).unwrap(), json!({"x": [null, []]}));
    let none = read_value(&json!({})).unwrap();
    assert_eq!((none.num_rows(), none.columns().len()), (0, 0));
    assert_eq!(read_value(&json!([{}, {}])).unwrap().num_rows(), 2);
}

#[test]
fn null_lists_and_empty_lists_are_distinct() {
    let value = json!({"x": [null, [], [null, [1, null], []], [null]]});
    let table = read_value(&value).unwrap();
    assert_eq!(table.array("x").unwrap().lengths(1).unwrap(), [0, 0, 3, 1]);
    assert_eq!(table.to_json(JsonForm::Columns).unwrap(), value);
}

#[test]
fn records_may_lack_keys() {
    let value = json!([{"a": 1}, {"b": [5]}, {"b": [], "a": 2}]);
    let table = read_value(&value).unwrap();
    assert_eq!(
        table.to_json(JsonForm::Columns).unwrap(),
        json!({"a": [1, null, 2], "b": [null, [5], []]})
    );
    // The reader of NDJSON keeps the type of a column for later tables, in which it is null or
    // empty.
    let text = "{\"a\": [[7]]}\n{\"a\": null}\n{\"a\": []}\n{}\n";
    let options = JsonOptions { batch_rows: 1, ..Default::default() };
    let parts: Vec<RaggedTable> =
        NdjsonReader::new(text.as_bytes(), options).collect::<Result<_>>().unwrap();
    let all = RaggedTable::concat(&parts).unwrap();
    assert_eq!(all.to_json(JsonForm::Columns).unwrap(), json!({"a": [[[7]], null, [], null]}));
}

#[test]
fn other_types_are_written_as_strings_or_numbers_and_read_back() {
    let stamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let dictionary: DictionaryArray<Int32Type> = [Some("u"), None].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "stamp",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1_580_472_000_123_456), None])),
        ),
        ("utc", Arc::new(TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("UTC"))),
        ("day", Arc::new(Date32Array::from(vec![18_292, -1]))),
        ("long", Arc::new(DurationSecondArray::from(vec![5, -5]))),
        (
            "price",
            Arc::new(Decimal128Array::from(vec![1234, -5]).with_precision_and_scale(9, 2).unwrap()),
        ),
        ("half", Arc::new(Float16Array::from_iter_values([0.1, 65504.0].map(half::f16::from_f32)))),
        ("wide", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("text", Arc::new(StringArray::from(vec!["a\"\\\u{1}\n\u{1F600}", ""]))),
        ("word", Arc::new(dictionary)),
    ];
    let mut builder = RaggedTable::builder();
    let mut options = JsonOptions::default();
    for (name, values) in columns {
        options = options.with_column(name, values.data_type().clone());
        builder = builder.column(name, 0, values);
    }
    let table = builder.build().unwrap();
    for form in [JsonForm::Columns, JsonForm::Records] {
        let value = table.to_json(form).unwrap();
        assert_eq!(RaggedTable::from_json(&value, &options).unwrap(), table, "{value}");
    }
    let value = table.to_json(JsonForm::Columns).unwrap();
    assert_eq!(value["stamp"][0], "2020-01-31T12:00:00.123456");
    assert_eq!(value["day"][1], "1969-12-31");
    assert_eq!(value["long"], json!(["00:00:05", "-00:00:05"]));
    let seconds = DataType::Duration(TimeUnit::Second);
    let numbers = read_as(&json!({"t": [93_600, null]}), "t", seconds.clone()).unwrap();
    assert_eq!(numbers.to_json(JsonForm::Columns).unwrap(), json!({"t": ["1d 02:00", null]}));
    for wrong in ["00:00:01.5", "1 day"] {
        let e = read_as(&json!({"t": ["1d", wrong]}), "t", seconds.clone()).unwrap_err();
        assert!(e.to_string().contains("t[1]") && e.to_string().contains(wrong), "{e}");
    }
    let months = arrow::datatypes::IntervalMonthDayNano::new(14, 3, 0);
    let spans = arrow::array::IntervalMonthDayNanoArray::from(vec![Some(months), None]);
    let spans = RaggedTable::builder().column("span", 0, Arc::new(spans)).build().unwrap();
    assert_eq!(spans.to_json(JsonForm::Columns).unwrap(), json!({"span": ["1y 2mo 3d", null]}));
    let numbers = read_as(&json!({"t": [1_000_000, null]}), "t", stamp).unwrap();
    assert_eq!(
        numbers.to_json(JsonForm::Columns).unwrap(),
        json!({"t": ["1970-01-01T00:00:01", null]})
    );
    // Floats in a column that is declared as integers are truncated, as numpy casts them. Strings
    // are refused.
    let cut = read_as(&json!({"x": [1.9, -1.9]}), "x", DataType::Int8).unwrap();
    assert_eq!(cut.to_json(JsonForm::Columns).unwrap(), json!({"x": [1, -1]}));
    assert!(read_as(&json!({"x": ["NaN"]}), "x", DataType::Int8).is_err());
}

#[test]
fn nan_and_infinities_are_written_as_strings() {
    let table = RaggedTable::builder()
        .column(
            "x",
            0,
            Arc::new(Float32Array::from(vec![
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                0.1,
                1.0,
            ])),
        )
        .build()
        .unwrap();
    let value = table.to_json(JsonForm::Columns).unwrap();
    assert_eq!(value.to_string(), r#"{"x":["NaN","Infinity","-Infinity",0.1,1.0]}"#);
    let back = read_as(&value, "x", DataType::Float32).unwrap();
    assert_eq!(back.to_json(JsonForm::Columns).unwrap(), value);
    // Infinities in a column without a declared type are refused, as nested_ragged_tensors refuses
    // them.
    assert!(read_value(&value).unwrap_err().to_string().contains("float64"));
}

#[test]
fn files_are_written_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let table = read_value(&json!({"id": [1, 2], "code": [[[5], []], []]})).unwrap();
    let path = dir.path().join("t.json");
    for form in [JsonForm::Columns, JsonForm::Records] {
        let options = JsonWriteOptions { form, overwrite: true };
        write_json(&path, &table, &options).unwrap();
        assert_eq!(read_json(&path, &JsonOptions::default()).unwrap(), table);
    }
    let refused = write_json(&path, &table, &JsonWriteOptions::default());
    assert!(matches!(refused, Err(Error::Exists(_))));
    let lines = dir.path().join("t.ndjson");
    write_ndjson(&lines, &table, &JsonWriteOptions::default()).unwrap();
    assert_eq!(read_ndjson(&lines, &JsonOptions::default()).unwrap(), table);
    assert_eq!(
        std::fs::read_to_string(&lines).unwrap(),
        "{\"id\":1,\"code\":[[5],[]]}\n{\"id\":2,\"code\":[]}\n"
    );
    // A byte order mark is not part of the text.
    for path in [&path, &lines] {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, format!("\u{feff}{text}")).unwrap();
    }
    assert_eq!(read_json(&path, &JsonOptions::default()).unwrap(), table);
    assert_eq!(read_ndjson(&lines, &JsonOptions::default()).unwrap(), table);
    std::fs::write(&lines, "{\"id\": }").unwrap();
    let text = read_ndjson(&lines, &JsonOptions::default()).unwrap_err().to_string();
    assert!(text.contains("t.ndjson") && text.contains("line 1, column 8"), "{text}");
    assert!(matches!(
        read_json(dir.path().join("no"), &JsonOptions::default()),
        Err(Error::Io { .. })
    ));
    // A file of more than one chunk of output is written completely.
    let many = RaggedTable::builder()
        .column("x", 0, Arc::new(Int64Array::from_iter_values(0..50_000)))
        .build()
        .unwrap();
    let path = dir.path().join("many.ndjson");
    write_ndjson(&path, &many, &JsonWriteOptions::default()).unwrap();
    let options = JsonOptions::default().with_column("x", DataType::Int64);
    assert_eq!(read_ndjson(&path, &options).unwrap(), many);
}
