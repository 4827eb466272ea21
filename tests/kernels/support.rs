//! Arrays, masks and indices for the tests of several kernels.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array};
use arrow::datatypes::DataType;
use rand::RngExt;
use serrate::array::{Layout, ListKind, Offsets, RaggedArray};
use serrate::kernels::elementwise::BinaryOp;

use crate::common::torture::{
    Node, Random, Spec, Torture, build_plain, draw_torture, encode_nodes, one_of,
};

pub(crate) fn any_leaf(rng: &mut Random) -> DataType {
    let types = [
        DataType::Int8,
        DataType::Float64,
        DataType::Utf8,
        DataType::Boolean,
        DataType::UInt32,
        DataType::Float16,
    ];
    one_of(&types, rng).clone()
}

/// Numeric types of all widths, booleans and strings.
pub(crate) const LEAVES: [DataType; 13] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float16,
    DataType::Float32,
    DataType::Float64,
    DataType::Boolean,
    DataType::Utf8,
];

/// Returns the type of a dictionary of strings with keys of the type `keys`.
pub(crate) fn dictionary_type(keys: DataType) -> DataType {
    DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8))
}

/// Builds values in the lists of the first `levels` levels of `row`, with leaves from `leaf`. With
/// `nulls`, lists of one element become null.
pub(crate) fn draw_like(
    row: &Node,
    levels: usize,
    leaf: &mut dyn FnMut() -> Node,
    nulls: bool,
) -> Node {
    match (levels, row) {
        (0, _) => leaf(),
        (_, Node::Null) => Node::Null,
        (n, row) => {
            let children: Vec<Node> =
                row.children().iter().map(|c| draw_like(c, n - 1, leaf, nulls)).collect();
            if nulls && children.len() == 1 { Node::Null } else { Node::List(children) }
        }
    }
}

/// Compares leaves: numbers are less than NaN, and NaN is less than null.
pub(crate) fn compare_nodes(a: &Node, b: &Node) -> Ordering {
    match (a, b) {
        (Node::Null, _) | (_, Node::Null) => a.is_null().cmp(&b.is_null()),
        (Node::Text(a), Node::Text(b)) => a.cmp(b),
        _ => {
            let (a, b) = (a.float().unwrap(), b.float().unwrap());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

/// Returns whether the comparison `op` is true for operands whose order is `order`.
pub(crate) fn is_met(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::NotEq => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::LtEq => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

pub(crate) fn draw_mask(rows: &[Node], levels: usize, rng: &mut Random) -> RaggedArray {
    let mut leaf = || match rng.random_range(0..6) {
        0 => Node::Null,
        n => Node::Bool(n % 2 == 0),
    };
    let rows: Vec<Node> = rows.iter().map(|r| draw_like(r, levels, &mut leaf, true)).collect();
    build_plain(levels, &DataType::Boolean, &rows)
}

/// Builds an array of one row, which is a list of `leaves`.
pub(crate) fn make_row(leaves: ArrayRef) -> RaggedArray {
    let axis = Offsets::from_lengths([leaves.len()]).unwrap().into();
    RaggedArray::try_new(1, vec![axis], leaves).unwrap()
}

pub(crate) fn make_ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Asserts that the two arrays use the same buffers of offsets.
#[track_caller]
pub(crate) fn shares_lists(a: &RaggedArray, b: &RaggedArray) {
    for (x, y) in a.axes().iter().zip(b.axes()) {
        match (x.layout(), y.layout()) {
            (Layout::Ragged(x), Layout::Ragged(y)) => assert!(x.ptr_eq(y)),
            (x, y) => assert!(!x.is_ragged() && !y.is_ragged()),
        }
    }
}

/// Builds an array whose rows are lists of the given lengths.
pub(crate) fn make_lists(lengths: &[usize], leaves: ArrayRef) -> RaggedArray {
    let axis = Offsets::from_lengths(lengths.iter().copied()).unwrap().into();
    RaggedArray::try_new(lengths.len(), vec![axis], leaves).unwrap()
}

pub(crate) fn int_lists(lengths: &[usize], values: &[i32]) -> RaggedArray {
    make_lists(lengths, Arc::new(Int32Array::from(values.to_vec())))
}

pub(crate) fn some_leaf(rng: &mut Random) -> DataType {
    one_of(&[DataType::Int32, DataType::Float32, DataType::Utf8, DataType::Boolean], rng).clone()
}

/// Draws lists of indices into the lists of axis `axis` of a row, with nulls among indices and
/// lists.
fn draw_indices(row: &Node, axis: usize, rng: &mut Random) -> Node {
    if axis > 1 {
        return match row {
            Node::Null if rng.random() => Node::Null,
            Node::Null => Node::List(vec![draw_indices(&Node::Null, axis - 1, rng)]),
            row => {
                Node::List(row.children().iter().map(|c| draw_indices(c, axis - 1, rng)).collect())
            }
        };
    }
    if rng.random_range(0..10) == 0 {
        return Node::Null;
    }
    let n = i64::try_from(row.children().len()).unwrap();
    let many = if row.is_null() { rng.random_range(0..3) } else { rng.random_range(0..6) };
    let any = |rng: &mut Random| match rng.random_range(0..8) {
        0 => Node::Null,
        _ if n == 0 => Node::Int(rng.random_range(-5..5)),
        _ => Node::Int(rng.random_range(-n..n)),
    };
    if n == 0 && !row.is_null() {
        return Node::List(vec![Node::Null; many]);
    }
    Node::List((0..many).map(|_| any(rng)).collect())
}

/// Encodes rows as nested lists. Each level has 32-bit or 64-bit offsets at random.
pub(crate) fn encode_rows(
    levels: usize,
    leaf: &DataType,
    rows: &[Node],
    rng: &mut Random,
) -> RaggedArray {
    let kinds: Vec<ListKind> =
        (0..levels).map(|_| *one_of(&[ListKind::List, ListKind::LargeList], rng)).collect();
    let array = encode_nodes(&Spec::new(levels, leaf.clone()), &kinds, rows, rng);
    RaggedArray::try_from_arrow(&array).unwrap()
}

/// Returns the position of `index` in `list`, counted from the end if it is negative.
pub(crate) fn resolve_index(list: &[Node], index: i64) -> usize {
    let n = i64::try_from(list.len()).unwrap();
    usize::try_from(if index < 0 { index + n } else { index }).unwrap()
}

/// Combines the nodes of `a` and `b` at `depth` with `f`. A list above it is null if it is null in
/// either.
pub(crate) fn zip_nodes(
    a: &Node,
    b: &Node,
    depth: usize,
    f: &mut dyn FnMut(&Node, &Node) -> Node,
) -> Node {
    if a.is_null() || b.is_null() {
        return if depth == 0 { f(a, b) } else { Node::Null };
    }
    if depth == 0 {
        return f(a, b);
    }
    let pairs = a.children().iter().zip(b.children());
    Node::List(pairs.map(|(a, b)| zip_nodes(a, b, depth - 1, f)).collect())
}

pub(crate) struct Beside {
    pub case: Torture,
    pub levels: usize,
    pub axis: usize,
    pub rows: Vec<Node>,
    pub array: RaggedArray,
    pub at: RaggedArray,
}

/// Draws an array and indices into its lists of axis `axis`.
pub(crate) fn draw_beside(leaf: DataType, levels: usize, axis: usize, rng: &mut Random) -> Beside {
    let axis = axis.min(levels);
    let case = draw_torture(&Spec::new(levels, leaf), rng);
    let rows: Vec<Node> = case.rows.iter().map(|r| draw_indices(r, axis, rng)).collect();
    let kind = one_of(&[DataType::Int64, DataType::Int16, DataType::Int32], rng).clone();
    let at = encode_rows(axis, &kind, &rows, rng);
    Beside { array: case.ragged(), case, levels, axis, rows, at }
}
