//! The reference for the tests of tables: random columns as nested vectors, and their conversion to
//! Arrow arrays, optionally with values below null lists and outside slices.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Int64Array, LargeListArray, ListArray,
    RecordBatch, RecordBatchOptions,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::prelude::*;
use serrate::table::RaggedTable;

use crate::common::torture::{Draw, Random, seed_random};
use crate::reference::Nested;

/// A nested list of integers, or an integer, or null.
pub(crate) type N = Nested<i64>;

/// Converts an Arrow array to nested vectors, value by value.
pub(crate) fn read_nested(array: &dyn Array) -> Vec<N> {
    (0..array.len())
        .map(|i| {
            if array.is_null(i) {
                return N::Null;
            }
            match array.data_type() {
                DataType::List(_) => N::List(read_nested(&array.as_list::<i32>().value(i))),
                DataType::LargeList(_) => N::List(read_nested(&array.as_list::<i64>().value(i))),
                DataType::FixedSizeList(..) => {
                    N::List(read_nested(&array.as_fixed_size_list().value(i)))
                }
                DataType::Int64 => N::Leaf(array.as_primitive::<Int64Type>().value(i)),
                other => panic!("{other}"),
            }
        })
        .collect()
}

/// Returns the rows of one column of a table.
pub(crate) fn read_column(table: &RaggedTable, name: &str) -> Vec<N> {
    read_nested(&table.array(name).unwrap().to_arrow().unwrap())
}

/// The Arrow type of the lists of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    List,
    LargeList,
    Fixed(i32),
}

/// Returns a nested value to hide below a null list or outside a slice: lists of the types `kinds`,
/// and the leaf -99.
fn make_junk(kinds: &[Kind]) -> N {
    match kinds.split_first() {
        None => N::Leaf(-99),
        Some((Kind::Fixed(n), rest)) => {
            N::List(vec![make_junk(rest); usize::try_from(*n).unwrap()])
        }
        Some((_, rest)) => N::List(vec![make_junk(rest)]),
    }
}

/// Returns an Arrow array of `elements`, whose lists have the types `kinds`, from the outermost
/// level. With `dirt`, its child arrays have values before the first list, after the last, and
/// below null lists.
pub(crate) fn encode_arrow(elements: &[N], kinds: &[Kind], dirt: bool) -> ArrayRef {
    let Some((kind, rest)) = kinds.split_first() else {
        return Arc::new(Int64Array::from_iter(elements.iter().map(|e| match e {
            N::Null => None,
            N::Leaf(x) => Some(*x),
            N::List(_) => panic!("{e:?}"),
        })));
    };
    let hidden = usize::from(dirt);
    let fixed = if let Kind::Fixed(n) = kind { Some(usize::try_from(*n).unwrap()) } else { None };
    let mut children = vec![make_junk(rest); if fixed.is_some() { 0 } else { hidden }];
    let mut offsets = vec![children.len()];
    for e in elements {
        match e {
            N::Null => children.extend(vec![make_junk(rest); fixed.unwrap_or(hidden)]),
            N::List(list) => children.extend(list.iter().cloned()),
            N::Leaf(_) => panic!("{e:?}"),
        }
        offsets.push(children.len());
    }
    if fixed.is_none() {
        children.extend(vec![make_junk(rest); hidden]);
    }
    let child = encode_arrow(&children, rest, dirt);
    let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
    let nulls = NullBuffer::from_iter(elements.iter().map(|e| *e != N::Null));
    let nulls = Some(nulls).filter(|n| n.null_count() > 0);
    match kind {
        Kind::List => {
            let offsets: Vec<i32> = offsets.iter().map(|o| i32::try_from(*o).unwrap()).collect();
            Arc::new(ListArray::new(field, OffsetBuffer::new(offsets.into()), child, nulls))
        }
        Kind::LargeList => {
            let offsets: Vec<i64> = offsets.iter().map(|o| i64::try_from(*o).unwrap()).collect();
            Arc::new(LargeListArray::new(field, OffsetBuffer::new(offsets.into()), child, nulls))
        }
        Kind::Fixed(n) => Arc::new(
            FixedSizeListArray::try_new_with_length(field, *n, child, nulls, elements.len())
                .unwrap(),
        ),
    }
}

/// The reference of a table: the lengths of the lists of each axis, and columns with name, axis and
/// rows.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rows: usize,
    pub(crate) lengths: Vec<Vec<usize>>,
    pub(crate) columns: Vec<(String, usize, Vec<N>)>,
}

impl Model {
    pub(crate) fn random(seed: u64, rows: usize, depth: usize, columns: usize) -> Self {
        let mut dice = seed_random(seed);
        let mut lengths = Vec::new();
        let mut n = rows;
        for _ in 0..depth {
            // In some models, all lists of a level have two elements, or are empty.
            let size = match dice.below(5) {
                0 => Some(2),
                1 if dice.below(3) == 0 => Some(0),
                _ => None,
            };
            let level: Vec<usize> = (0..n).map(|_| size.unwrap_or_else(|| dice.below(4))).collect();
            n = level.iter().sum();
            lengths.push(level);
        }
        let columns = (0..columns)
            .map(|c| {
                let axis = if c == 0 { depth } else { dice.below(depth + 1) };
                let list_nulls = dice.below(2) == 0;
                let total = if axis == 0 { rows } else { lengths[axis - 1].iter().sum() };
                let mut elements: Vec<N> = (0..total)
                    .map(|i| match dice.below(5) {
                        0 => N::Null,
                        _ => N::Leaf(i64::try_from(i).unwrap() * 10 + i64::try_from(c).unwrap()),
                    })
                    .collect();
                for level in lengths[..axis].iter().rev() {
                    let mut rest = elements.into_iter();
                    elements = level
                        .iter()
                        .map(|n| {
                            let list: Vec<N> = rest.by_ref().take(*n).collect();
                            let null = list_nulls && list.is_empty() && dice.below(2) == 0;
                            if null { N::Null } else { N::List(list) }
                        })
                        .collect();
                }
                (format!("c{c}"), axis, elements)
            })
            .collect();
        Self { rows, lengths, columns }
    }

    /// Draws the Arrow types of the lists of a column on `axis`. Draws fixed-size lists only for
    /// levels whose lists have equal lengths.
    fn kinds(&self, axis: usize, dice: &mut Random) -> Vec<Kind> {
        self.lengths[..axis]
            .iter()
            .map(|level| {
                let same = level.first().filter(|n| level.iter().all(|m| m == *n));
                match (dice.below(3), same) {
                    (0, Some(n)) => Kind::Fixed(i32::try_from(*n).unwrap()),
                    (1, _) => Kind::LargeList,
                    _ => Kind::List,
                }
            })
            .collect()
    }

    /// Returns a batch of the columns, whose lists have random types. With `dirt`, the columns are
    /// slices of longer arrays with hidden values.
    pub(crate) fn batch(&self, seed: u64, dirt: bool) -> RecordBatch {
        let mut dice = seed_random(seed ^ 0xABCD);
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (name, axis, rows) in &self.columns {
            let kinds = self.kinds(*axis, &mut dice);
            let array = if dirt {
                let mut around = vec![make_junk(&kinds), N::Null];
                around.extend(rows.iter().cloned());
                around.push(make_junk(&kinds));
                encode_arrow(&around, &kinds, true).slice(2, rows.len())
            } else {
                encode_arrow(rows, &kinds, false)
            };
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &options).unwrap()
    }

    pub(crate) fn table(&self, seed: u64, dirt: bool) -> RaggedTable {
        RaggedTable::try_from_batch(&self.batch(seed, dirt)).unwrap()
    }

    /// Asserts that a table equals the model.
    pub(crate) fn check(&self, table: &RaggedTable) {
        assert_eq!(table.num_rows(), self.rows);
        for (name, axis, rows) in &self.columns {
            assert_eq!(table.column(name).unwrap().axis(), *axis, "{name}");
            assert_eq!(&read_column(table, name), rows, "{name}");
        }
    }

    /// Returns the name of each column with the rows that `pick` makes of its rows.
    pub(crate) fn with_rows(&self, pick: impl Fn(&[N]) -> Vec<N>) -> Vec<(String, Vec<N>)> {
        self.columns.iter().map(|(n, _, rows)| (n.clone(), pick(rows))).collect()
    }
}

/// Draws a model, and a seed for the types of its lists.
pub(crate) fn draw_models() -> impl Strategy<Value = (Model, u64)> {
    (any::<u64>(), 0usize..6, 0usize..4, 1usize..5)
        .prop_map(|(seed, rows, depth, columns)| (Model::random(seed, rows, depth, columns), seed))
}

/// Asserts that the columns of `table` with these names have these rows.
pub(crate) fn assert_columns(table: &RaggedTable, expected: &[(String, Vec<N>)]) {
    for (name, rows) in expected {
        assert_eq!(&read_column(table, name), rows, "{name}");
    }
}
