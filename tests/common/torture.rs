//! Random nested Arrow arrays in layouts that are valid but easily misread, with their values as
//! trees.
//!
//! [`draw_torture`] returns an Arrow array of lists (List, LargeList and FixedSizeList, mixed over
//! the levels) and the values of each row as a tree. Offsets do not start at zero; children before,
//! after and between the lists belong to no list; null lists have children; null leaves have
//! values.

#![allow(dead_code)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeListArray, LargeListArray, ListArray,
    PrimitiveArray, StringArray, new_empty_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, Float64Type, Int64Type};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::array::{ListKind, RaggedArray};

pub type Random = ChaCha8Rng;

pub fn seed_random(seed: u64) -> Random {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A source of random numbers.
pub trait Draw {
    /// Returns a random number below `n`.
    fn below(&mut self, n: usize) -> usize;
    /// Returns true with a probability of `percent`.
    fn chance(&mut self, percent: usize) -> bool;
}

impl Draw for Random {
    fn below(&mut self, n: usize) -> usize {
        self.random_range(0..n)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A value of an array: a leaf or a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A list or leaf that is null.
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    List(Vec<Node>),
}

impl Node {
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Returns the elements of a list, or no elements if the list is null.
    pub fn children(&self) -> &[Node] {
        match self {
            Self::List(v) => v,
            Self::Null => &[],
            other => panic!("{other:?} is not a list"),
        }
    }

    /// Returns all leaves below this node, including null leaves and null lists.
    pub fn leaves(&self) -> Vec<Node> {
        match self {
            Self::List(v) => v.iter().flat_map(Node::leaves).collect(),
            other => vec![other.clone()],
        }
    }

    /// Returns the nodes `levels` levels below this one. A null list on the way has none.
    pub fn leaves_below(&self, levels: usize) -> Vec<Node> {
        match levels {
            0 => vec![self.clone()],
            n => self.children().iter().flat_map(|c| c.leaves_below(n - 1)).collect(),
        }
    }

    /// Returns a copy in which `f` replaces every node `levels` levels below this one. Null lists
    /// above that level stay.
    pub fn map_at(&self, levels: usize, f: &mut dyn FnMut(&Node) -> Node) -> Node {
        match (levels, self) {
            (0, node) => f(node),
            (_, Self::Null) => Self::Null,
            (n, node) => Self::List(node.children().iter().map(|c| c.map_at(n - 1, f)).collect()),
        }
    }

    pub fn float(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss)]
            Self::Int(i) => Some(*i as f64),
            Self::Float(f) => Some(*f),
            Self::Bool(b) => Some(f64::from(u8::from(*b))),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            Self::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }
}

/// Returns whether values are equal, where NaN equals NaN, and floats may differ by rounding.
pub fn are_alike(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Float(a), Node::Float(b)) => {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * (1.0 + a.abs())
        }
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_alike(a, b))
        }
        (a, b) => a == b,
    }
}

#[track_caller]
pub fn assert_alike(found: &[Node], expected: &[Node]) {
    assert_eq!(found.len(), expected.len(), "the numbers of rows differ");
    for (row, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(are_alike(f, e), "row {row}: found {f:?}, expected {e:?}");
    }
}

/// The properties of a random array.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Number of levels of lists.
    pub levels: usize,
    /// Type of the leaves: an integer, a float, Boolean or Utf8.
    pub leaf: DataType,
    pub rows: usize,
    /// Largest length of a list.
    pub longest: usize,
    /// Whether leaves may be null. `null_lists` says the same of lists.
    pub null_leaves: bool,
    pub null_lists: bool,
    /// Integers are drawn between `-reach` and `reach`, unsigned ones between 0 and `reach`.
    pub reach: i64,
    /// Whether floats may be NaN or infinite.
    pub odd_floats: bool,
}

impl Spec {
    pub fn new(levels: usize, leaf: DataType) -> Self {
        Self {
            levels,
            leaf,
            rows: 9,
            longest: 5,
            null_leaves: true,
            null_lists: true,
            reach: 100,
            odd_floats: false,
        }
    }
}

/// A random array, the kinds of its list levels, and its rows as trees.
#[derive(Clone, Debug)]
pub struct Torture {
    pub kinds: Vec<ListKind>,
    pub array: ArrayRef,
    pub rows: Vec<Node>,
}

impl Torture {
    pub fn ragged(&self) -> RaggedArray {
        RaggedArray::try_from_arrow(&self.array).unwrap()
    }
}

/// Draws a random array. About one in eight is an extreme: no rows, all null, all empty, or one
/// very long row.
pub fn draw_torture(spec: &Spec, rng: &mut Random) -> Torture {
    let mut spec = spec.clone();
    let kinds: Vec<ListKind> = (0..spec.levels)
        .map(|_| match rng.random_range(0..5) {
            0 | 1 => ListKind::List,
            2 | 3 => ListKind::LargeList,
            _ => ListKind::FixedSizeList(rng.random_range(0..4)),
        })
        .collect();
    let shape = rng.random_range(0..32);
    match shape {
        0 => spec.rows = 0,
        1 => {
            spec.rows = 1;
            spec.longest = 60;
        }
        2 => spec.longest = 0,
        _ => spec.rows = rng.random_range(0..=spec.rows),
    }
    let mut rows: Vec<Node> = (0..spec.rows).map(|_| draw_tree(&spec, &kinds, rng)).collect();
    if shape == 3 && spec.null_lists && !kinds.is_empty() {
        rows.fill(Node::Null);
    }
    let array = encode_nodes(&spec, &kinds, &rows, rng);
    Torture { kinds, array, rows }
}

/// Draws a random value that is nested in lists of the given kinds; without kinds, a leaf.
pub fn draw_tree(spec: &Spec, kinds: &[ListKind], rng: &mut Random) -> Node {
    let Some((kind, below)) = kinds.split_first() else { return draw_leaf(spec, rng) };
    if spec.null_lists && rng.random_range(0..6) == 0 {
        return Node::Null;
    }
    let n = match kind {
        ListKind::FixedSizeList(n) => usize::try_from(*n).unwrap(),
        _ if rng.random_range(0..5) == 0 => 0,
        _ => rng.random_range(0..=spec.longest),
    };
    Node::List((0..n).map(|_| draw_tree(spec, below, rng)).collect())
}

fn draw_leaf(spec: &Spec, rng: &mut Random) -> Node {
    if spec.null_leaves && rng.random_range(0..6) == 0 {
        return Node::Null;
    }
    match &spec.leaf {
        DataType::Boolean => Node::Bool(rng.random()),
        DataType::Utf8 => Node::Text("abcd"[..rng.random_range(0..=4)].into()),
        t if t.is_floating() => match rng.random_range(0..12) {
            0 if spec.odd_floats => Node::Float(f64::NAN),
            1 if spec.odd_floats => Node::Float(f64::INFINITY),
            2 if spec.odd_floats => Node::Float(f64::NEG_INFINITY),
            _ => Node::Float(f64::from(rng.random_range(-400i32..400)) / 8.0),
        },
        t if t.is_unsigned_integer() => Node::Int(rng.random_range(0..=spec.reach)),
        _ => Node::Int(rng.random_range(-spec.reach..=spec.reach)),
    }
}

/// Encodes rows as Arrow lists of the given kinds. The result is a slice of a longer array.
pub fn encode_nodes(spec: &Spec, kinds: &[ListKind], rows: &[Node], rng: &mut Random) -> ArrayRef {
    let (before, behind) = (rng.random_range(0..3), rng.random_range(0..3));
    let mut all: Vec<Node> = (0..before).map(|_| draw_tree(spec, kinds, rng)).collect();
    all.extend(rows.iter().cloned());
    all.extend((0..behind).map(|_| draw_tree(spec, kinds, rng)));
    encode_level(spec, kinds, &all, rng).slice(before, rows.len())
}

fn encode_level(spec: &Spec, kinds: &[ListKind], nodes: &[Node], rng: &mut Random) -> ArrayRef {
    let Some((kind, below)) = kinds.split_first() else { return encode_leaves(spec, nodes, rng) };
    // Children before the first list, in null lists and after the last list belong to no row.
    let mut children: Vec<Node> = Vec::new();
    let mut junk = |n: usize, children: &mut Vec<Node>| {
        children.extend((0..n).map(|_| draw_tree(spec, below, rng)));
    };
    let fixed = match kind {
        ListKind::FixedSizeList(n) => Some(usize::try_from(*n).unwrap()),
        _ => None,
    };
    let hide = nodes.len() % 3;
    junk(if fixed.is_some() { 0 } else { nodes.len() % 4 }, &mut children);
    let mut offsets = vec![children.len()];
    for node in nodes {
        match node {
            Node::Null => junk(fixed.unwrap_or(hide), &mut children),
            list => children.extend(list.children().iter().cloned()),
        }
        offsets.push(children.len());
    }
    if fixed.is_none() {
        junk(2, &mut children);
    }
    let nulls = nodes
        .iter()
        .any(Node::is_null)
        .then(|| NullBuffer::new(BooleanBuffer::from_iter(nodes.iter().map(|n| !n.is_null()))));
    let child = encode_level(spec, below, &children, rng);
    let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
    match kind {
        ListKind::List => {
            let o: ScalarBuffer<i32> = offsets.iter().map(|o| i32::try_from(*o).unwrap()).collect();
            Arc::new(ListArray::new(field, OffsetBuffer::new(o), child, nulls))
        }
        ListKind::LargeList => {
            let o: ScalarBuffer<i64> = offsets.iter().map(|o| i64::try_from(*o).unwrap()).collect();
            Arc::new(LargeListArray::new(field, OffsetBuffer::new(o), child, nulls))
        }
        ListKind::FixedSizeList(n) => Arc::new(
            FixedSizeListArray::try_new_with_length(field, *n, child, nulls, nodes.len()).unwrap(),
        ),
    }
}

/// Builds an array of leaves with arbitrary values under its nulls, as a slice of a longer array.
fn encode_leaves(spec: &Spec, nodes: &[Node], rng: &mut Random) -> ArrayRef {
    let pad = rng.random_range(0..3usize);
    let valid: Vec<bool> =
        std::iter::repeat_n(true, pad).chain(nodes.iter().map(|n| !n.is_null())).collect();
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    let hidden = |i: usize| Node::Int(i64::try_from(i).unwrap() % 7 + 77);
    let padded: Vec<Node> = (0..pad)
        .map(hidden)
        .chain(
            nodes.iter().enumerate().map(|(i, n)| if n.is_null() { hidden(i) } else { n.clone() }),
        )
        .collect();
    let whole: ArrayRef = match &spec.leaf {
        DataType::Boolean => {
            let bits = padded.iter().map(|n| *n != Node::Bool(false));
            Arc::new(BooleanArray::new(BooleanBuffer::from_iter(bits), nulls))
        }
        DataType::Utf8 => {
            let text = padded.iter().map(|n| match n {
                Node::Text(t) => t.as_str(),
                _ => "hidden",
            });
            let (offsets, values, _) = StringArray::from_iter_values(text).into_parts();
            Arc::new(StringArray::new(offsets, values, nulls))
        }
        t if t.is_floating() => {
            let v: Vec<f64> = padded.iter().map(|n| n.float().unwrap()).collect();
            let plain = cast(&PrimitiveArray::<Float64Type>::from(v), t).unwrap();
            with_nulls(&plain, nulls)
        }
        t => {
            let v: Vec<i64> = padded.iter().map(|n| n.int().unwrap()).collect();
            let plain = cast(&PrimitiveArray::<Int64Type>::from(v), t).unwrap();
            with_nulls(&plain, nulls)
        }
    };
    whole.slice(pad, nodes.len())
}

fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let data = array.to_data().into_builder().nulls(nulls).build().unwrap();
    arrow::array::make_array(data)
}

/// Decodes the rows of an Arrow array one by one, as the reference for kernels.
pub fn decode_rows(array: &ArrayRef) -> Vec<Node> {
    let list = |at: &dyn Fn(usize) -> ArrayRef| -> Vec<Node> {
        (0..array.len())
            .map(|i| if array.is_null(i) { Node::Null } else { Node::List(decode_rows(&at(i))) })
            .collect()
    };
    match array.data_type() {
        DataType::List(_) => list(&|i| array.as_list::<i32>().value(i)),
        DataType::LargeList(_) => list(&|i| array.as_list::<i64>().value(i)),
        DataType::FixedSizeList(..) => list(&|i| array.as_fixed_size_list().value(i)),
        DataType::Boolean => {
            array.as_boolean().iter().map(|v| v.map_or(Node::Null, Node::Bool)).collect()
        }
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .map(|v| v.map_or(Node::Null, |v| Node::Text(v.into())))
            .collect(),
        DataType::UInt64 => array
            .as_primitive::<arrow::datatypes::UInt64Type>()
            .iter()
            .map(|v| v.map_or(Node::Null, |v| Node::Int(i64::try_from(v).unwrap())))
            .collect(),
        t if t.is_floating() => decode_numbers::<Float64Type>(array, Node::Float),
        _ => decode_numbers::<Int64Type>(array, Node::Int),
    }
}

fn decode_numbers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    node: impl Fn(T::Native) -> Node,
) -> Vec<Node> {
    let wide = cast(array, &T::DATA_TYPE).unwrap();
    wide.as_primitive::<T>().iter().map(|v| v.map_or(Node::Null, &node)).collect()
}

/// Converts a ragged array to Arrow, validates it, and returns its rows as trees.
#[track_caller]
pub fn decode_ragged(array: &RaggedArray) -> Vec<Node> {
    let arrow = array.to_arrow().unwrap();
    arrow.to_data().validate_full().unwrap();
    decode_rows(&arrow)
}

/// Builds a ragged array in the simplest layout: 32-bit offsets that start at zero.
pub fn build_plain(levels: usize, leaf: &DataType, rows: &[Node]) -> RaggedArray {
    fn lists(levels: usize, leaf: &DataType, nodes: &[Node]) -> ArrayRef {
        if levels == 0 {
            let spec = Spec::new(0, leaf.clone());
            return if nodes.is_empty() {
                new_empty_array(leaf)
            } else {
                encode_leaves(&spec, nodes, &mut seed_random(0))
            };
        }
        let children: Vec<Node> = nodes.iter().flat_map(|n| n.children().to_vec()).collect();
        let child = lists(levels - 1, leaf, &children);
        let offsets = OffsetBuffer::from_lengths(nodes.iter().map(|n| n.children().len()));
        let nulls = NullBuffer::from_iter(nodes.iter().map(|n| !n.is_null()));
        let field = Arc::new(Field::new_list_field(child.data_type().clone(), true));
        Arc::new(ListArray::new(field, offsets, child, Some(nulls)))
    }
    RaggedArray::try_from_arrow(&lists(levels, leaf, rows)).unwrap()
}

/// Returns a random item of `of`.
pub fn one_of<'a, T>(of: &'a [T], rng: &mut impl Rng) -> &'a T {
    &of[rng.random_range(0..of.len())]
}
