//! Random nested lists as trees, their conversion to Arrow arrays in which nulls hide values, and
//! back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Int64Array, LargeListArray, ListArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use proptest::prelude::*;
use serrate::array::{ListKind, RaggedArray};

use crate::reference::Nested;

/// A nested list of integers.
pub(crate) type N = Nested<i64>;

/// Rows as trees, and the kinds of Arrow list of each level.
#[derive(Clone, Debug)]
pub(crate) struct NestedRows {
    pub(crate) kinds: Vec<ListKind>,
    pub(crate) rows: Vec<N>,
}

fn any_tree(kinds: &[ListKind]) -> BoxedStrategy<N> {
    let Some((kind, rest)) = kinds.split_first() else {
        return prop_oneof![1 => Just(N::Null), 5 => (0i64..100).prop_map(N::Leaf)].boxed();
    };
    let size = match kind {
        ListKind::FixedSizeList(n) => *n as usize..=*n as usize,
        _ => 0..=4,
    };
    let list = prop::collection::vec(any_tree(rest), size).prop_map(N::List);
    prop_oneof![1 => Just(N::Null), 8 => list].boxed()
}

fn draw_kind() -> impl Strategy<Value = ListKind> {
    prop_oneof![
        Just(ListKind::List),
        Just(ListKind::LargeList),
        (0i32..3).prop_map(ListKind::FixedSizeList)
    ]
}

/// Draws rows with up to three levels of lists of any kind, with nulls on every level.
pub(crate) fn any_nested_rows() -> impl Strategy<Value = NestedRows> {
    prop::collection::vec(draw_kind(), 0..=3).prop_flat_map(|kinds| {
        prop::collection::vec(any_tree(&kinds), 0..6)
            .prop_map(move |rows| NestedRows { kinds: kinds.clone(), rows })
    })
}

fn make_junk(kinds: &[ListKind]) -> N {
    let Some((kind, rest)) = kinds.split_first() else { return N::Leaf(99) };
    let n = if let ListKind::FixedSizeList(n) = kind { *n as usize } else { 2 };
    N::List(vec![make_junk(rest); n])
}

fn make_array(kinds: &[ListKind], elements: &[N], leaf: &DataType) -> ArrayRef {
    let Some((kind, rest)) = kinds.split_first() else {
        let leaves: Int64Array = elements
            .iter()
            .map(|t| match t {
                N::Leaf(v) => Some(*v),
                N::Null => None,
                N::List(_) => panic!("a list at the level of leaves"),
            })
            .collect();
        return cast(&leaves, leaf).unwrap();
    };
    let valid: NullBuffer = elements.iter().map(|t| *t != N::Null).collect();
    // A null list has two children, and two children before and after all lists belong to none.
    // Fixed-size lists have as many children under a null as their size.
    let (mut children, mut offsets) = (vec![make_junk(rest); 2], vec![2]);
    for t in elements {
        match (t, kind) {
            (N::List(c), _) => children.extend_from_slice(c),
            (_, ListKind::FixedSizeList(n)) => {
                children.extend(vec![make_junk(rest); *n as usize]);
            }
            _ => children.extend(vec![make_junk(rest); 2]),
        }
        offsets.push(children.len());
    }
    children.extend(vec![make_junk(rest); 2]);
    if let ListKind::FixedSizeList(_) = kind {
        children.drain(..2);
        children.truncate(children.len() - 2);
    }
    let child = make_array(rest, &children, leaf);
    let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
    let nulls = Some(valid);
    match kind {
        ListKind::List => {
            let offsets = offsets.iter().map(|o| *o as i32).collect();
            Arc::new(ListArray::new(field, OffsetBuffer::new(offsets), child, nulls))
        }
        ListKind::LargeList => {
            let offsets = offsets.iter().map(|o| *o as i64).collect();
            Arc::new(LargeListArray::new(field, OffsetBuffer::new(offsets), child, nulls))
        }
        ListKind::FixedSizeList(n) => Arc::new(
            FixedSizeListArray::try_new_with_length(field, *n, child, nulls, elements.len())
                .unwrap(),
        ),
    }
}

impl NestedRows {
    /// Returns the rows as a ragged array with leaves of the type `leaf`. The Arrow array is a
    /// slice of a longer one.
    pub(crate) fn to_ragged(&self, leaf: &DataType) -> RaggedArray {
        let mut rows = vec![make_junk(&self.kinds)];
        rows.extend_from_slice(&self.rows);
        rows.push(make_junk(&self.kinds));
        let whole = make_array(&self.kinds, &rows, leaf);
        RaggedArray::try_from_arrow(&whole.slice(1, self.rows.len())).unwrap()
    }
}

/// Returns the rows of a ragged array of numbers as trees.
pub(crate) fn to_trees(array: &RaggedArray) -> Vec<N> {
    let leaves = cast(array.leaves(), &DataType::Int64).unwrap();
    let mut below: Vec<N> =
        leaves.as_primitive::<Int64Type>().iter().map(|v| v.map_or(N::Null, N::Leaf)).collect();
    for axis in array.axes().iter().rev() {
        let layout = axis.layout();
        below = (0..layout.lists())
            .map(|i| match axis.nulls() {
                Some(n) if n.is_null(i) => N::Null,
                _ => N::List(below[layout.range(i)].to_vec()),
            })
            .collect();
    }
    below
}
