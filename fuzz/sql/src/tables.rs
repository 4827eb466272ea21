//! The tables of the statements: lists of every kind and leaf, with null lists, hidden values and
//! offsets that do not begin at 0.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;
use serrate::array::ListKind;

use crate::torture::{Node, Random, Spec, draw_tree, encode_nodes, seed_random};

/// A family of columns with equal lists and one column per leaf type: the prefix of their names,
/// and the kinds of their lists.
pub type Family = (&'static str, &'static [ListKind]);

pub const FAMILIES: &[Family] = &[
    ("", &[]),
    ("l", &[ListKind::List]),
    ("m", &[ListKind::List]),
    ("g", &[ListKind::LargeList]),
    ("x", &[ListKind::FixedSizeList(2)]),
    ("ll", &[ListKind::List, ListKind::List]),
    ("gl", &[ListKind::LargeList, ListKind::List]),
    ("lx", &[ListKind::List, ListKind::FixedSizeList(2)]),
    ("xg", &[ListKind::FixedSizeList(2), ListKind::LargeList]),
];

/// Letters for the types of leaves, as in the catalogue of calls: integer, float, boolean, string,
/// time.
pub const LEAVES: [char; 5] = ['i', 'f', 'b', 's', 't'];

/// Names of columns of other types.
pub const OTHERS: [&str; 9] = ["id", "u", "n", "d", "c", "v", "r", "l_r", "l_c"];

const ROWS: usize = 9;

/// The tables: name and batches.
pub static TABLES: LazyLock<Vec<(&'static str, Vec<RecordBatch>)>> = LazyLock::new(|| {
    let make = |(name, seed): (&'static str, u64)| {
        (name, make_table(seed).unwrap_or_else(|e| panic!("{name}: {e}")))
    };
    [("q", 1), ("o", 2)].map(make).into()
});

/// Returns the name of the column of a family whose leaves have the type of the letter `leaf`.
pub fn column_name(family: &str, leaf: char) -> String {
    if family.is_empty() { leaf.into() } else { format!("{family}_{leaf}") }
}

fn leaf_type(leaf: char) -> DataType {
    match leaf {
        'f' => DataType::Float64,
        'b' => DataType::Boolean,
        's' => DataType::Utf8,
        't' => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => DataType::Int64,
    }
}

/// Returns the Arrow type of nested lists of these kinds, from the outermost, around leaves of type
/// `leaf`.
fn nest_type(kinds: &[ListKind], leaf: DataType) -> DataType {
    kinds.iter().rev().fold(leaf, |of, kind| match kind {
        ListKind::List => DataType::new_list(of, true),
        ListKind::LargeList => DataType::new_large_list(of, true),
        ListKind::FixedSizeList(size) => DataType::new_fixed_size_list(of, *size, true),
    })
}

/// Draws lists of small integers. All columns of a family are casts of them.
fn draw_numbers(kinds: &[ListKind], rng: &mut Random) -> ArrayRef {
    let spec = Spec { longest: 3, reach: 4, ..Spec::new(kinds.len(), DataType::Int64) };
    let rows: Vec<Node> = (0..ROWS).map(|_| draw_tree(&spec, kinds, rng)).collect();
    encode_nodes(&spec, kinds, &rows, rng)
}

fn make_table(seed: u64) -> Result<Vec<RecordBatch>, ArrowError> {
    let mut rng = seed_random(seed);
    let ids = Int64Array::from_iter_values((0_i64..).take(ROWS));
    let mut columns: Vec<(String, ArrayRef)> = vec![("id".into(), Arc::new(ids))];
    for (family, kinds) in FAMILIES {
        let numbers = draw_numbers(kinds, &mut rng);
        for leaf in LEAVES {
            let column = cast(&numbers, &nest_type(kinds, leaf_type(leaf)))?;
            columns.push((column_name(family, leaf), column));
        }
    }
    let text = |of: DataType| DataType::Dictionary(Box::new(DataType::Int32), Box::new(of));
    let numbers = draw_numbers(&[], &mut rng);
    let strings = cast(&numbers, &DataType::Utf8)?;
    let others = [
        ("u", cast(&cast(&numbers, &DataType::Boolean)?, &DataType::UInt64)?),
        ("n", cast(&numbers, &DataType::Decimal128(12, 2))?),
        ("d", cast(&cast(&numbers, &DataType::Int32)?, &DataType::Date32)?),
        ("c", cast(&strings, &text(DataType::Utf8))?),
        ("v", cast(&strings, &DataType::Utf8View)?),
        ("r", Arc::new(make_structs(numbers)?) as ArrayRef),
    ];
    columns.extend(others.map(|(name, column)| (name.to_owned(), column)));
    let lists = draw_numbers(&[ListKind::List], &mut rng);
    let lists = lists.as_list::<i32>();
    let structs: ArrayRef = Arc::new(make_structs(lists.values().clone())?);
    let words = cast(&cast(lists.values(), &DataType::Utf8)?, &text(DataType::Utf8))?;
    for (name, items) in [("l_r", structs), ("l_c", words)] {
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        columns.push((name.into(), Arc::new(ListArray::try_new(field, offsets, items, nulls)?)));
    }
    let fields = columns.iter().map(|(name, of)| Field::new(name, of.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let whole = RecordBatch::try_new(schema, columns)?;
    Ok(vec![whole.slice(0, 4), whole.slice(4, ROWS - 4)])
}

/// Returns a struct for each number, with the number as an integer and as a string.
fn make_structs(numbers: ArrayRef) -> Result<StructArray, ArrowError> {
    let words = cast(&numbers, &DataType::Utf8)?;
    let nulls = numbers.nulls().cloned();
    let fields = vec![
        Field::new("a", numbers.data_type().clone(), true),
        Field::new("b", words.data_type().clone(), true),
    ];
    StructArray::try_new(fields.into(), vec![numbers, words], nulls)
}
