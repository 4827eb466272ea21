//! Conversions between tables and record batches, with columns of lists and with lists of structs:
//! values, shared buffers, errors.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Int32Array, Int64Array, ListArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Int64Type, Schema};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::Layout;
use serrate::table::{AXES_METADATA, Column, RaggedTable, unzip, zip};

use crate::model::{N, draw_models, read_column, read_nested};

fn make_ints(rows: &[&[i32]]) -> ArrayRef {
    let rows = rows.iter().map(|r| Some(r.iter().copied().map(Some).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
}

fn make_batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn batches_are_converted_to_tables_and_back((model, seed) in draw_models(), dirt: bool) {
        let batch = model.batch(seed, dirt);
        let table = RaggedTable::try_from_batch(&batch).unwrap();
        model.check(&table);
        // The table is converted to its own list types, and to the list types of the input.
        let own = table.to_batch().unwrap();
        let declared = table.arrow_schema().unwrap();
        prop_assert_eq!(own.schema_ref(), &declared);
        let theirs = table.to_batch_as(batch.schema_ref()).unwrap();
        prop_assert_eq!(theirs.schema_ref(), batch.schema_ref());
        for (i, (_, _, rows)) in model.columns.iter().enumerate() {
            prop_assert_eq!(&read_nested(own.column(i)), rows);
            prop_assert_eq!(&read_nested(theirs.column(i)), rows);
        }
        prop_assert_eq!(&RaggedTable::try_from_batch(&own).unwrap(), &table);
    }

    #[test]
    fn tables_are_converted_to_lists_of_structs_and_back((model, seed) in draw_models(), dirt: bool) {
        let table = model.table(seed, dirt).without_null_lists();
        let zipped = table.to_struct_batch().unwrap();
        prop_assert_eq!(zipped.num_rows(), model.rows);
        let again = RaggedTable::try_from_batch(&zipped).unwrap();
        for (name, axis, _) in &model.columns {
            prop_assert_eq!(again.column(name).unwrap().axis(), *axis);
            prop_assert_eq!(read_column(&again, name), read_column(&table, name));
        }
        // A slice of the structs has a slice of the rows.
        if model.rows > 1 {
            let part = RaggedTable::try_from_batch(&zipped.slice(1, model.rows - 1)).unwrap();
            for (name, _, _) in &model.columns {
                prop_assert_eq!(&read_column(&part, name)[..], &read_column(&table, name)[1..]);
            }
        }
    }
}

#[test]
fn conversions_share_offsets_and_values() {
    let time = make_ints(&[&[1, 2], &[], &[3]]);
    let code = make_ints(&[&[4, 5], &[], &[6]]);
    let input = make_batch(vec![("time", time.clone()), ("code", code.clone())]);
    let table = RaggedTable::try_from_batch(&input).unwrap();
    let Layout::Ragged(kept) = table.layout(1).unwrap() else { panic!() };
    assert!(kept.ptr_eq(&time.as_list::<i32>().offsets().clone().into()));

    let values = |a: &ArrayRef| a.as_primitive::<Int32Type>().values().as_ptr();
    let inner = |a: &ArrayRef| values(a.as_list::<i32>().values());
    assert_eq!(values(table.column("code").unwrap().values()), inner(&code));

    let out = table.to_batch().unwrap();
    let offsets = |a: &ArrayRef| a.as_list::<i32>().offsets().as_ptr();
    assert_eq!(offsets(out.column(0)), offsets(&time));
    assert_eq!(offsets(out.column(1)), offsets(&time));
    assert_eq!(inner(out.column(1)), inner(&code));
    // Reading the batch again, one buffer is one axis.
    let again = RaggedTable::try_from_batch(&out).unwrap();
    assert_eq!(again, table);

    let zipped = table.to_struct_batch().unwrap();
    let structs = zipped.column(0).as_list::<i32>();
    assert_eq!(structs.offsets().as_ptr(), offsets(&time));
    assert_eq!(values(structs.values().as_struct().column(1)), inner(&code));
    let unzipped = unzip(&zipped).unwrap();
    assert_eq!(offsets(unzipped.column(0)), offsets(&time));
    assert_eq!(inner(unzipped.column(1)), inner(&code));
}

#[test]
fn slices_share_values_and_store_offsets_once() {
    let table = RaggedTable::try_from_batch(&make_batch(vec![
        ("a", make_ints(&[&[1, 2], &[3], &[4, 5]])),
        ("b", make_ints(&[&[6, 7], &[8], &[9, 0]])),
    ]))
    .unwrap();
    let part = table.slice(1, 2).unwrap();
    let values = |t: &RaggedTable| {
        t.column("b").unwrap().values().as_primitive::<Int32Type>().values().as_ptr()
    };
    assert_eq!(values(&part), values(&table).wrapping_add(2));
    let out = part.to_batch().unwrap();
    let list = |i: usize| out.column(i).as_list::<i32>();
    assert_eq!(list(0).offsets().as_ptr(), list(1).offsets().as_ptr());
    assert_eq!(list(0).offsets()[..], [0, 1, 3]);
    assert_eq!(list(1).values().as_primitive::<Int32Type>().values().as_ptr(), values(&part));
}

#[test]
fn a_row_view_copies_nothing() {
    let table = RaggedTable::try_from_batch(&make_batch(vec![
        ("id", Arc::new(Int64Array::from(vec![10, 11]))),
        ("a", make_ints(&[&[1, 2], &[3, 4, 5]])),
    ]))
    .unwrap();
    let base = table.column("a").unwrap().values().as_primitive::<Int32Type>().values().as_ptr();
    let row = table.row(1).unwrap();
    assert_eq!(row.typed::<Int32Type>("a").unwrap().as_ptr(), base.wrapping_add(2));
    let values = row.values("a").unwrap();
    assert_eq!(values.as_primitive::<Int32Type>().values().as_ptr(), base.wrapping_add(2));
    assert_eq!(row.typed::<Int64Type>("id").unwrap(), [11]);
    let events = row.events(1..3).unwrap();
    assert_eq!(events.typed::<Int32Type>("a").unwrap(), [4, 5]);
    let one = events.to_table().unwrap();
    let ptr = one.column("a").unwrap().values().as_primitive::<Int32Type>().values().as_ptr();
    assert_eq!(ptr, base.wrapping_add(3));
    assert_eq!(events.events(1..2).unwrap().typed::<Int32Type>("a").unwrap(), [5]);
    assert!(matches!(row.events(2..4), Err(Error::OutOfRange { axis: 1, index: 4, size: 3 })));
}

#[test]
fn errors_of_different_lengths_name_columns_axis_and_list() {
    let error = RaggedTable::try_from_batch(&make_batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("time", make_ints(&[&[1, 2], &[3], &[4, 5]])),
        ("code", make_ints(&[&[1, 2], &[3], &[4]])),
    ]))
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "columns \"time\" and \"code\" differ in list lengths on axis 1: list 2 has 2 element(s) in \"time\" and 1 in \"code\"; columns of one ragged table must have equal lists on every axis they share"
    );
}

#[test]
fn errors_of_inner_lengths_count_lists_of_that_axis() {
    let nest = |inner: ArrayRef, offsets: Vec<i32>| -> ArrayRef {
        let field = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::new(offsets.into()), inner, None))
    };
    let a = nest(make_ints(&[&[9], &[1], &[2, 3], &[4]]), vec![1, 2, 4]);
    let b = nest(make_ints(&[&[1], &[2, 3], &[]]), vec![0, 1, 3]);
    let error = RaggedTable::try_from_batch(&make_batch(vec![("a", a), ("b", b)])).unwrap_err();
    assert!(
        matches!(error, Error::Disagree { axis: 2, list: 2, left_len: 1, right_len: 0, .. }),
        "{error}"
    );
}

#[test]
fn null_lists_and_empty_lists_have_equal_lengths() {
    let hidden = ListArray::new(
        Arc::new(Field::new_list_field(DataType::Int32, true)),
        OffsetBuffer::new(vec![0, 2, 3].into()),
        Arc::new(Int32Array::from(vec![7, 7, 1])),
        Some(NullBuffer::from(vec![false, true])),
    );
    let columns = |other: ArrayRef| {
        make_batch(vec![("a", Arc::new(hidden.clone()) as ArrayRef), ("b", other)])
    };
    let table = RaggedTable::try_from_batch(&columns(make_ints(&[&[], &[5]]))).unwrap();
    assert_eq!(nested_ints(&table, "a"), [N::Null, N::List(vec![N::Leaf(1)])]);
    assert_eq!(table.column("a").unwrap().list_nulls()[0].as_ref().unwrap().null_count(), 1);
    assert!(table.column("b").unwrap().list_nulls()[0].is_none());
    let out = table.to_batch().unwrap();
    assert!(out.column(0).is_null(0) && out.column(1).is_valid(0));
    assert_eq!(
        out.column(0).as_list::<i32>().offsets().as_ptr(),
        out.column(1).as_list::<i32>().offsets().as_ptr()
    );
    // A list of structs is null or empty for all fields, so this table has no struct batch.
    let refused = table.to_struct_batch().unwrap_err().to_string();
    assert!(refused.contains("list 0 of axis 1") && refused.contains("\"b\""), "{refused}");
    assert!(table.without_null_lists().to_struct_batch().is_ok());
    assert!(matches!(
        RaggedTable::try_from_batch(&columns(make_ints(&[&[5, 5], &[5]]))),
        Err(Error::Disagree { axis: 1, list: 0, left_len: 0, right_len: 2, .. })
    ));
}

fn nested_ints(table: &RaggedTable, name: &str) -> Vec<N> {
    let cast = arrow::compute::cast(
        &table.array(name).unwrap().to_arrow().unwrap(),
        &DataType::new_list(DataType::Int64, true),
    );
    read_nested(&cast.unwrap())
}

#[test]
fn fixed_size_lists_and_lists_may_share_an_axis() {
    let fixed = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Int32, true)),
        2,
        Arc::new(Int32Array::from(vec![1, 2, 3, 4])),
        None,
    );
    let fixed: ArrayRef = Arc::new(fixed);
    let both = |columns| RaggedTable::try_from_batch(&make_batch(columns));
    let table = both(vec![("f", fixed.clone()), ("r", make_ints(&[&[5, 6], &[7, 8]]))]).unwrap();
    assert_eq!(table.array("f").unwrap().shape(), [Some(2), None]);
    let out = table.to_batch().unwrap();
    assert_eq!(out.column(0).data_type(), out.column(1).data_type());
    let alone = both(vec![("f", fixed.clone()), ("g", fixed.clone())]).unwrap();
    assert_eq!(alone.array("g").unwrap().shape(), [Some(2), Some(2)]);
    assert_eq!(alone.to_batch().unwrap().column(1), &fixed);
    assert!(matches!(
        both(vec![("f", fixed), ("r", make_ints(&[&[5, 6], &[7]]))]),
        Err(Error::Disagree { axis: 1, list: 1, left_len: 2, right_len: 1, .. })
    ));
}

fn make_visits() -> RecordBatch {
    let codes = StructArray::from(vec![
        (
            Arc::new(Field::new("code", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("time", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![10, 20, 30])) as ArrayRef,
        ),
    ]);
    let list = |offsets: Vec<i32>, child: ArrayRef| -> ArrayRef {
        let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::new(offsets.into()), child, None))
    };
    let codes = list(vec![0, 1, 3], Arc::new(codes));
    let time: ArrayRef = Arc::new(Int32Array::from(vec![100, 200]));
    let fields = Fields::from(vec![
        Field::new("time", DataType::Int32, true)
            .with_metadata(HashMap::from([("unit".into(), "day".into())])),
        Field::new("codes", codes.data_type().clone(), true),
    ]);
    // The second visit is a null struct, so its fields are null.
    let visits =
        StructArray::new(fields, vec![time, codes], Some(NullBuffer::from(vec![true, false])));
    make_batch(vec![
        ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("visits", list(vec![0, 2, 2], Arc::new(visits))),
    ])
}

#[test]
fn nested_lists_of_structs_become_columns_and_named_axes() {
    let table = RaggedTable::try_from_batch(&make_visits()).unwrap();
    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
    // Two fields are named `time`, so both columns are named by their paths.
    assert_eq!(names, ["name", "visits.time", "code", "visits.codes.time"]);
    assert_eq!(table.axis_name(1), Some("visits"));
    assert_eq!(table.axis_name(2), Some("codes"));
    assert_eq!(table.column("visits.time").unwrap().field().metadata()["unit"], "day");
    assert_eq!(table.column("visits.time").unwrap().values().null_count(), 1);
    let code = table.array("code").unwrap();
    assert_eq!(code.lengths(2).unwrap(), [1, 0]);
    assert!(code.axes()[1].nulls().unwrap().is_null(1));
    assert_eq!(code.leaves().as_primitive::<Int32Type>().values()[..], [1]);
    let sibling = table.to_batch().unwrap();
    assert_eq!(sibling.schema().metadata()[AXES_METADATA], r#"[null,"visits","codes"]"#);
    assert_eq!(sibling.schema().field(1).metadata()["unit"], "day");
    let again = RaggedTable::try_from_batch(&sibling).unwrap();
    assert_eq!(again, table);
    assert_eq!(again.axis_name(2), Some("codes"));
    assert_eq!(zip(&sibling).unwrap().schema().field(1).name(), "visits");
}

#[test]
fn struct_batches_refuse_an_axis_named_as_a_column() {
    let table = RaggedTable::builder()
        .names(["patient", "age"])
        .lengths([1])
        .unwrap()
        .column("age", 0, Arc::new(Int32Array::from(vec![1])))
        .column("code", 1, Arc::new(Int32Array::from(vec![1])))
        .build()
        .unwrap();
    let refused = table.to_struct_batch().unwrap_err().to_string();
    assert!(refused.contains("\"age\"") && refused.contains("rename"), "{refused}");
}

#[test]
fn tables_without_rows_columns_or_elements_are_converted() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options);
    let table = RaggedTable::try_from_batch(&none.unwrap()).unwrap();
    assert_eq!((table.num_rows(), table.ndim()), (3, 1));
    assert_eq!(table.to_batch().unwrap().num_rows(), 3);
    assert_eq!(table.to_struct_batch().unwrap().num_rows(), 3);
    let row = table.row(2).unwrap();
    assert!(row.is_empty());
    assert_eq!(row.events(0..0).unwrap().to_table().unwrap().num_rows(), 1);
    assert!(row.events(0..1).is_err());
    assert!(row.range(1).is_err());
    assert_eq!(table.slice(1, 1).unwrap().num_rows(), 1);

    let empty = make_batch(vec![("a", make_ints(&[]))]);
    let table = RaggedTable::try_from_batch(&empty).unwrap();
    assert_eq!((table.num_rows(), table.ndim()), (0, 2));
    assert_eq!(table.to_batch().unwrap().columns(), empty.columns());
    assert!(table.row(0).is_err());
    assert_eq!(table.slice(0, 0).unwrap(), table);

    let hollow = make_batch(vec![("a", make_ints(&[&[], &[]]))]);
    let table = RaggedTable::try_from_batch(&hollow).unwrap();
    assert_eq!(table.axis_len(1).unwrap(), 0);
    assert_eq!(table.to_batch().unwrap().columns(), hollow.columns());
    assert_eq!(unzip(&table.to_struct_batch().unwrap()).unwrap().columns(), hollow.columns());
}

#[test]
fn list_views_and_duplicate_names_are_refused() {
    let list = make_ints(&[&[1]]);
    let view = arrow::compute::cast(
        &list,
        &DataType::ListView(Arc::new(Field::new_list_field(DataType::Int32, true))),
    );
    if let Ok(view) = view {
        let refused = RaggedTable::try_from_batch(&make_batch(vec![("v", view)])).unwrap_err();
        assert!(refused.to_string().contains("column \"v\""), "{refused}");
    }
    let schema = Schema::new(vec![
        Field::new("a", list.data_type().clone(), true),
        Field::new("a", list.data_type().clone(), true),
    ]);
    let twice = RecordBatch::try_new(Arc::new(schema), vec![list.clone(), list]).unwrap();
    let refused = RaggedTable::try_from_batch(&twice).unwrap_err().to_string();
    assert!(refused.contains("two columns are named \"a\""), "{refused}");
}
