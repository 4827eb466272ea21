//! Functions that keep the lists of their argument return them with the same buffers of offsets,
//! also in nested calls.

use std::sync::Arc;

use super::run;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, LargeListArray, ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use serrate::datafusion;

/// Returns an array of two levels of lists, some of them empty, over the given leaves.
fn make_lists(leaves: ArrayRef) -> ArrayRef {
    let item = |t: &DataType| Arc::new(Field::new_list_field(t.clone(), true));
    let inner = OffsetBuffer::from_lengths([2, 0, 1, 3]);
    let inner = ListArray::new(item(leaves.data_type()), inner, leaves, None);
    let outer = OffsetBuffer::from_lengths([3, 0, 1]);
    Arc::new(ListArray::new(item(inner.data_type()), outer, Arc::new(inner), None))
}

fn create_session() -> (SessionContext, RecordBatch) {
    let values = make_lists(Arc::new(Float32Array::from(vec![
        Some(1.5),
        None,
        Some(-2.0),
        Some(0.5),
        Some(7.0),
        Some(9.0),
    ])));
    let texts = make_lists(Arc::new(StringArray::from(vec!["a", "b", "ab", "c", "a", "b"])));
    let large = {
        let leaves: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
        let item = Arc::new(Field::new_list_field(DataType::Float32, true));
        let offsets = OffsetBuffer::<i64>::from_lengths([1, 0, 2]);
        Arc::new(LargeListArray::new(item, offsets, leaves, None)) as ArrayRef
    };
    let columns = [("x", values), ("s", texts), ("g", large)];
    let fields: Vec<_> =
        columns.iter().map(|(n, c)| Field::new(*n, c.data_type().clone(), true)).collect();
    let columns = columns.into_iter().map(|(_, c)| c).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
    let ctx = serrate::sql::session();
    ctx.register_table("t", Arc::new(table)).unwrap();
    (ctx, batch)
}

async fn compute_expr(ctx: &SessionContext, expr: &str) -> ArrayRef {
    let (_, batches) = run(ctx, &format!("SELECT {expr} AS y FROM t")).await.unwrap();
    assert_eq!(batches.len(), 1, "{expr}");
    Arc::clone(batches[0].column(0))
}

#[tokio::test]
async fn elementwise_functions_share_the_offsets_of_both_levels() {
    let (ctx, batch) = create_session();
    for (column, expr) in [
        ("x", "x * 2 + 1"),
        ("x", "ragged_round(ragged_sqrt(ragged_abs(x)) * 3, 1)"),
        ("x", "ragged_and(x > 1, ragged_not(ragged_is_null(x)))"),
        ("x", "ragged_where(x > 1, x, 0)"),
        ("x", "ragged_fill_null(x, 0)"),
        ("x", "ragged_cast(ragged_fill_null(x, 0) * 10, 'BIGINT')"),
        ("x", "ragged_minimum(ragged_maximum(x, 0), 5)"),
        ("x", "ragged_softmax(ragged_normalize(x))"),
        ("x", "ragged_map(x, lambda v: v * 2)"),
        ("x", "ragged_map(ragged_map(x, lambda v: v + 1), x, lambda v, w: v - w)"),
        ("x", "ragged_between(x, 0, 5)"),
        ("x", "ragged_coords(x, -1)"),
        ("x", "ragged_broadcast(ragged_lengths(x, 2), x)"),
        ("x", "ragged_unzip(ragged_zip('a', x, 'b', x + 1), 'b')"),
        ("x", "x > ragged_lengths(x, 2)"),
        ("s", "ragged_like(s, 'a%')"),
        ("s", "ragged_isin(s, ['a', 'c'])"),
        ("s", "s > 'a'"),
    ] {
        let given = batch.column_by_name(column).unwrap().as_list::<i32>().clone();
        let found = compute_expr(&ctx, expr).await;
        let found = found.as_list::<i32>();
        assert!(given.offsets().ptr_eq(found.offsets()), "{expr}: axis 1");
        let (given, found) = (given.values().as_list::<i32>(), found.values().as_list::<i32>());
        assert!(given.offsets().ptr_eq(found.offsets()), "{expr}: axis 2");
    }
}

#[tokio::test]
async fn reductions_of_the_innermost_axis_share_the_outer_offsets() {
    let (ctx, batch) = create_session();
    let given = batch.column(0).as_list::<i32>().clone();
    for expr in [
        "ragged_sum(x, -1)",
        "ragged_mean(x * 2, -1)",
        "ragged_lengths(x, 2)",
        "ragged_count(x, -1)",
        "ragged_first(x, -1)",
        "ragged_any(x > 1, -1)",
        "ragged_unzip(ragged_zip('n', ragged_lengths(x, 2), 'x', x), 'n') + 1",
    ] {
        let found = compute_expr(&ctx, expr).await;
        assert!(given.offsets().ptr_eq(found.as_list::<i32>().offsets()), "{expr}");
    }
}

#[tokio::test]
async fn offsets_of_large_lists_and_unchanged_leaves_are_shared() {
    let (ctx, batch) = create_session();
    let given = batch.column(2).as_list::<i64>().clone();
    for expr in ["g + 1", "ragged_map(g, lambda v: v / 2)", "ragged_is_null(g)"] {
        let found = compute_expr(&ctx, expr).await;
        assert!(given.offsets().ptr_eq(found.as_list::<i64>().offsets()), "{expr}");
    }
    // If there is no NULL to fill, and for values that only pass through structs, the leaves are
    // shared, too.
    for expr in ["ragged_fill_null(g, 0)", "ragged_unzip(ragged_zip('g', g), 'g')"] {
        let found = compute_expr(&ctx, expr).await;
        let (a, b) = (given.values().to_data(), found.as_list::<i64>().values().to_data());
        assert!(a.ptr_eq(&b), "{expr}");
    }
}
