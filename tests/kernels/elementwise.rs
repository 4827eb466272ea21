//! Elementwise arithmetic, comparisons and logic.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int8Array,
    Int64Array, StringArray, TimestampMicrosecondArray, UInt8Array, UInt64Array, new_null_array,
};
use arrow::datatypes::{DataType, Float32Type, Int8Type, TimeUnit};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::kernels::elementwise::{
    BinaryOp, Operand, OperandType, OperationTypes, binary, binary_owned, neg, not,
};
use serrate::kernels::select::common_type;

use crate::common::torture::{
    Node, Random, Spec, assert_alike, build_plain, decode_ragged, draw_torture, draw_tree,
    encode_nodes, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{is_met, make_ints, make_row, shares_lists};

const ALL: [BinaryOp; 13] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Eq,
    BinaryOp::NotEq,
    BinaryOp::Lt,
    BinaryOp::LtEq,
    BinaryOp::Gt,
    BinaryOp::GtEq,
    BinaryOp::And,
    BinaryOp::Or,
];

fn compute_leaf(op: BinaryOp, a: &Node, b: &Node) -> Node {
    if op.is_logical() {
        let truth = |n: &Node| match n {
            Node::Null => None,
            n => Some(*n == Node::Bool(true)),
        };
        let known = op == BinaryOp::Or;
        return match (truth(a), truth(b)) {
            (Some(x), _) | (_, Some(x)) if x == known => Node::Bool(known),
            (Some(_), Some(_)) => Node::Bool(!known),
            _ => Node::Null,
        };
    }
    if a.is_null() || b.is_null() {
        return Node::Null;
    }
    if op.is_comparison() {
        let o = match (a, b) {
            (Node::Text(a), Node::Text(b)) => a.cmp(b),
            _ => a.float().unwrap().total_cmp(&b.float().unwrap()),
        };
        return Node::Bool(is_met(op, o));
    }
    match (a, b) {
        (Node::Int(a), Node::Int(b)) => Node::Int(match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            _ => a % b,
        }),
        _ => {
            let (a, b) = (a.float().unwrap(), b.float().unwrap());
            Node::Float(match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                _ => a % b,
            })
        }
    }
}

/// Reference: applies `op` to the leaves of `a`, which has `levels` levels of lists, and those of
/// `b`, which has `fewer`. A leaf of `b` is used for all leaves below its position in `a`.
fn combine_nodes(op: BinaryOp, a: &Node, b: &Node, levels: usize, fewer: usize) -> Node {
    if levels == 0 {
        return compute_leaf(op, a, b);
    }
    if a.is_null() || (fewer > 0 && b.is_null()) {
        return Node::Null;
    }
    Node::List(if fewer == 0 {
        a.children().iter().map(|c| combine_nodes(op, c, b, levels - 1, 0)).collect()
    } else {
        let pairs = a.children().iter().zip(b.children());
        pairs.map(|(x, y)| combine_nodes(op, x, y, levels - 1, fewer - 1)).collect()
    })
}

/// Draws values in the lists of the first `levels` levels of `row`. Some lists are null, and no
/// integer is 0.
fn draw_like_row(row: &Node, levels: usize, spec: &Spec, rng: &mut Random) -> Node {
    if levels == 0 {
        return match draw_tree(spec, &[], rng) {
            Node::Int(0) => Node::Int(1),
            n => n,
        };
    }
    match row {
        _ if rng.random_range(0..12) == 0 => Node::Null,
        Node::Null => Node::List(
            (0..rng.random_range(0..3))
                .map(|_| draw_like_row(&Node::Null, levels - 1, spec, rng))
                .collect(),
        ),
        row => Node::List(
            row.children().iter().map(|c| draw_like_row(c, levels - 1, spec, rng)).collect(),
        ),
    }
}

fn make_scalar(value: &Node, leaf: &DataType) -> ArrayRef {
    match value {
        Node::Int(i) => Arc::new(Int64Array::from(vec![*i])),
        Node::Float(f) => Arc::new(Float64Array::from(vec![*f])),
        Node::Bool(b) => Arc::new(BooleanArray::from(vec![*b])),
        Node::Text(t) => Arc::new(StringArray::from(vec![t.as_str()])),
        _ => new_null_array(leaf, 1),
    }
}

/// Asserts that the two arrays use the same buffers of offsets and nulls.
#[track_caller]
fn shares_axes(a: &RaggedArray, b: &RaggedArray) {
    shares_lists(a, b);
    for (x, y) in a.axes().iter().zip(b.axes()) {
        match (x.nulls(), y.nulls()) {
            (Some(x), Some(y)) => assert!(x.inner().ptr_eq(y.inner())),
            (x, y) => assert!(x.is_none() && y.is_none()),
        }
    }
}

/// Draws rows of `levels` levels of lists. All lists at level `i` of a row have the length
/// `lengths[row][i]`, or 1 if `ones[i]` is set.
fn repeated_rows(
    lengths: &[Vec<usize>],
    ones: &[bool],
    levels: usize,
    rng: &mut Random,
) -> Vec<Node> {
    fn list(row: &[usize], ones: &[bool], levels: usize, rng: &mut Random) -> Node {
        if levels == 0 {
            return match rng.random_range(0..7) {
                0 => Node::Null,
                _ => Node::Int(rng.random_range(-9..9)),
            };
        }
        if rng.random_range(0..15) == 0 {
            return Node::Null;
        }
        let n = if ones[0] { 1 } else { row[0] };
        Node::List((0..n).map(|_| list(&row[1..], &ones[1..], levels - 1, rng)).collect())
    }
    lengths.iter().map(|row| list(row, ones, levels, rng)).collect()
}

fn combine_rows(a: &Node, b: &Node, left: usize, right: usize) -> Node {
    match (left, right) {
        (0, 0) => match (a, b) {
            (Node::Int(a), Node::Int(b)) => Node::Int(a - b),
            _ => Node::Null,
        },
        (0, _) if b.is_null() => Node::Null,
        (0, _) => {
            Node::List(b.children().iter().map(|b| combine_rows(a, b, 0, right - 1)).collect())
        }
        (_, 0) if a.is_null() => Node::Null,
        (_, 0) => {
            Node::List(a.children().iter().map(|a| combine_rows(a, b, left - 1, 0)).collect())
        }
        _ if a.is_null() || b.is_null() => Node::Null,
        _ => {
            let (x, y) = (a.children(), b.children());
            let n = if x.len() == 1 { y.len() } else { x.len() };
            let of = |v: &[Node], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
            let pair = |i| combine_rows(&of(x, i), &of(y, i), left - 1, right - 1);
            Node::List((0..n).map(pair).collect())
        }
    }
}

proptest! {
    #![proptest_config(configure_cases(300))]

    #[test]
    fn operations_on_arrays_and_scalars_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let op = *one_of(&ALL, &mut rng);
        let types: &[DataType] = if op.is_logical() {
            &[DataType::Boolean]
        } else if op.is_comparison() {
            &[DataType::Int16, DataType::Float32, DataType::Utf8, DataType::Boolean]
        } else {
            &[DataType::Int16, DataType::Int64, DataType::Float32, DataType::Float64]
        };
        let mut spec = Spec::new(levels, one_of(types, &mut rng).clone());
        spec.odd_floats = true;
        let leaf = spec.leaf.clone();
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();

        let fewer = rng.random_range(0..=levels);
        let others: Vec<Node> =
            case.rows.iter().map(|r| draw_like_row(r, fewer, &spec, &mut rng)).collect();
        let b = build_plain(fewer, &leaf, &others);
        let found = binary(op, Operand::Array(&a), Operand::Array(&b)).unwrap();
        let expected: Vec<Node> = case.rows.iter().zip(&others)
            .map(|(x, y)| combine_nodes(op, x, y, levels, fewer)).collect();
        assert_alike(&decode_ragged(&found), &expected);
        let types = OperationTypes::new(op, OperandType::Leaves(&leaf), OperandType::Leaves(&leaf)).unwrap();
        prop_assert_eq!(found.leaf_type(), types.output());

        let value = draw_like_row(&Node::Null, 0, &spec, &mut rng);
        let one = make_scalar(&value, &leaf);
        let found = binary(op, Operand::Array(&a), Operand::Scalar(&one)).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().map(|r| combine_nodes(op, r, &value, levels, 0)).collect();
        assert_alike(&decode_ragged(&found), &expected);
        shares_axes(&found, &a);
        if !matches!(op, BinaryOp::Div | BinaryOp::Rem) || !leaf.is_integer() {
            let found = binary(op, Operand::Scalar(&one), Operand::Array(&a)).unwrap();
            let expected: Vec<Node> = case.rows.iter()
                .map(|r| r.map_at(levels, &mut |x| compute_leaf(op, &value, x))).collect();
            assert_alike(&decode_ragged(&found), &expected);
        }
    }

    #[test]
    fn negation_of_numbers_and_booleans_equals_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let case = draw_torture(&Spec::new(levels, DataType::Int8), &mut rng);
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| match l {
            Node::Int(i) => Node::Int(-i),
            _ => Node::Null,
        })).collect();
        assert_alike(&decode_ragged(&neg(&case.ragged()).unwrap()), &expected);
        let case = draw_torture(&Spec::new(levels, DataType::Boolean), &mut rng);
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| match l {
            Node::Bool(b) => Node::Bool(!b),
            _ => Node::Null,
        })).collect();
        assert_alike(&decode_ragged(&not(&case.ragged()).unwrap()), &expected);
    }

    #[test]
    fn lists_of_different_lengths_are_refused(seed: u64) {
        let mut rng = seed_random(seed);
        let spec = Spec { null_lists: false, rows: 6, ..Spec::new(2, DataType::Int32) };
        let case = draw_torture(&spec, &mut rng);
        let Some(row) = case.rows.iter().position(|r| !r.leaves_below(2).is_empty()) else {
            return Ok(());
        };
        let mut other = case.rows.clone();
        let Node::List(lists) = &mut other[row] else { unreachable!() };
        // The list must have at least two elements, because a list of one element is broadcast.
        let Some(at) = lists.iter().position(|l| l.children().len() > 1) else { return Ok(()) };
        let Node::List(leaves) = &mut lists[at] else { unreachable!() };
        let before = leaves.len();
        leaves.push(Node::Int(0));
        let list: usize = case.rows[..row].iter().map(|r| r.children().len()).sum::<usize>() + at;
        let kinds = [serrate::array::ListKind::LargeList, serrate::array::ListKind::List];
        let b =
            RaggedArray::try_from_arrow(&encode_nodes(&spec, &kinds, &other, &mut rng)).unwrap();
        let e = binary(BinaryOp::Add, Operand::Array(&case.ragged()), Operand::Array(&b)).unwrap_err();
        let expected = format!(
            "list {list} of axis 2 (row {row}) has {before} element(s) on the left and {} on the right",
            before + 1
        );
        prop_assert!(e.to_string().contains(&expected), "{}: {}", expected, e);
    }
}

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn axes_of_size_one_are_broadcast(seed: u64, left in 0usize..4, right in 0usize..4) {
        let mut rng = seed_random(seed);
        let lengths: Vec<Vec<usize>> = (0..rng.random_range(0..5))
            .map(|_| (0..3).map(|_| rng.random_range(0..4)).collect()).collect();
        let mut ones = || -> Vec<bool> { (0..3).map(|_| rng.random_range(0..3) == 0).collect() };
        let (one_left, one_right) = (ones(), ones());
        let a = repeated_rows(&lengths, &one_left, left, &mut rng);
        let b = repeated_rows(&lengths, &one_right, right, &mut rng);
        let x = build_plain(left, &DataType::Int64, &a);
        let y = build_plain(right, &DataType::Int64, &b);
        let found = binary(BinaryOp::Sub, Operand::Array(&x), Operand::Array(&y)).unwrap();
        let expected: Vec<Node> =
            a.iter().zip(&b).map(|(a, b)| combine_rows(a, b, left, right)).collect();
        assert_alike(&decode_ragged(&found), &expected);
    }
}

#[test]
fn literals_take_the_type_of_the_leaves_or_widen_as_numpy_does() {
    use DataType::{Boolean, Float16, Float32, Float64, Int8, Int16, Int64, UInt8, UInt16, UInt64};
    let int = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let float = |x: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![x])) };
    let big: ArrayRef = Arc::new(arrow::array::UInt64Array::from(vec![u64::MAX]));
    for (leaf, literal, add) in [
        (UInt8, int(255), UInt8),
        (UInt8, int(256), UInt16),
        (UInt8, int(-1), Int16),
        (Int8, int(200), Int16),
        (Int8, int(-129), Int16),
        (Int64, big, Float64),
        (UInt64, int(-1), Float64),
        (UInt8, float(2.0), Float64),
        (Float32, int(7), Float32),
        (Float32, float(0.1), Float32),
        (Float32, float(1e300), Float64),
        (Float32, float(f64::INFINITY), Float32),
        (Float16, int(100_000), Float32),
        (Boolean, int(1), Int64),
        (UInt16, new_null_array(&Int64, 1), UInt16),
        (UInt16, new_null_array(&DataType::Null, 1), UInt16),
    ] {
        let types = OperationTypes::new(
            BinaryOp::Add,
            OperandType::Leaves(&leaf),
            OperandType::Literal(&literal),
        );
        assert_eq!(types.unwrap().output(), &add, "{leaf} + {literal:?}");
        let types = OperationTypes::new(
            BinaryOp::Mul,
            OperandType::Literal(&literal),
            OperandType::Leaves(&leaf),
        );
        assert_eq!(types.unwrap().output(), &add, "{literal:?} * {leaf}");
    }
    // A comparison of integers with a whole float does not convert them to floats.
    let types = OperationTypes::new(
        BinaryOp::Gt,
        OperandType::Leaves(&UInt16),
        OperandType::Literal(&float(5.0)),
    );
    assert_eq!(types.unwrap().left(), &UInt16);
    let types = OperationTypes::new(
        BinaryOp::Gt,
        OperandType::Leaves(&UInt16),
        OperandType::Literal(&float(5.5)),
    );
    assert_eq!(types.unwrap().left(), &Float64);
    // For two arrays, the types are promoted as numpy does.
    let types =
        OperationTypes::new(BinaryOp::Add, OperandType::Leaves(&UInt8), OperandType::Leaves(&Int8));
    assert_eq!(types.unwrap().output(), &Int16);
    let e = OperationTypes::new(
        BinaryOp::Add,
        OperandType::Leaves(&DataType::Utf8),
        OperandType::Leaves(&Int8),
    );
    assert!(
        e.unwrap_err()
            .to_string()
            .starts_with("operator + with operands of the types Utf8 and Int8")
    );
    let e = OperationTypes::new(
        BinaryOp::And,
        OperandType::Leaves(&Boolean),
        OperandType::Leaves(&Int8),
    );
    assert!(
        e.unwrap_err()
            .to_string()
            .ends_with("expected booleans (compare or cast the values first), found Int8")
    );
}

#[test]
fn integers_do_not_wrap() {
    let a = make_row(Arc::new(UInt8Array::from(vec![Some(200), None])));
    let sixty: ArrayRef = Arc::new(Int64Array::from(vec![60]));
    let e =
        binary(BinaryOp::Add, Operand::Array(&a), Operand::Scalar(&sixty)).unwrap_err().to_string();
    assert!(e.contains("cast the values to a wider type first"), "{e}");
    let zero: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let e =
        binary(BinaryOp::Div, Operand::Array(&a), Operand::Scalar(&zero)).unwrap_err().to_string();
    assert!(e.contains("division by an integer zero"), "{e}");
    assert!(neg(&a).unwrap_err().to_string().contains("cast unsigned integers"));
    let smallest = make_row(Arc::new(Int8Array::from(vec![-128])));
    assert!(neg(&smallest).unwrap_err().to_string().contains("wider type"));
}

#[test]
fn strings_dictionaries_and_times_are_compared_by_value() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["b"]));
    let truth = |a: &RaggedArray, op, with: &ArrayRef| {
        decode_ragged(&binary(op, Operand::Array(a), Operand::Scalar(with)).unwrap())
    };
    let expected = [Node::List(vec![Node::Bool(false), Node::Bool(true), Node::Null])];
    let words = make_row(Arc::new(StringArray::from(vec![Some("a"), Some("c"), None])));
    assert_eq!(truth(&words, BinaryOp::Gt, &text), expected);
    let keys: DictionaryArray<Int8Type> = vec![Some("a"), Some("c"), None].into_iter().collect();
    assert_eq!(truth(&make_row(Arc::new(keys)), BinaryOp::Gt, &text), expected);

    let times = TimestampMicrosecondArray::from(vec![Some(0), Some(86_400_000_001), None]);
    let times = make_row(Arc::new(times));
    let day: ArrayRef = Arc::new(StringArray::from(vec!["1970-01-02"]));
    assert_eq!(truth(&times, BinaryOp::Gt, &day), expected);
    let date: ArrayRef = Arc::new(arrow::array::Date32Array::from(vec![1]));
    assert_eq!(truth(&times, BinaryOp::Gt, &date), expected);
    // A literal in a finer unit than the leaves is not rounded.
    let fine: ArrayRef =
        Arc::new(arrow::array::TimestampNanosecondArray::from(vec![86_400_000_001_001]));
    let earlier = [Node::List(vec![Node::Bool(true), Node::Bool(true), Node::Null])];
    assert_eq!(truth(&times, BinaryOp::Lt, &fine), earlier);
    let nonsense: ArrayRef = Arc::new(StringArray::from(vec!["soon"]));
    assert!(binary(BinaryOp::Lt, Operand::Array(&times), Operand::Scalar(&nonsense)).is_err());

    let since = binary(BinaryOp::Sub, Operand::Array(&times), Operand::Array(&times)).unwrap();
    assert_eq!(since.leaf_type(), &DataType::Duration(TimeUnit::Microsecond));
    let hour: ArrayRef = Arc::new(arrow::array::DurationSecondArray::from(vec![3600]));
    let later = binary(BinaryOp::Add, Operand::Array(&times), Operand::Scalar(&hour)).unwrap();
    assert_eq!(later.leaf_type(), times.leaf_type());
    let month: ArrayRef = Arc::new(arrow::array::IntervalYearMonthArray::from(vec![1]));
    assert!(binary(BinaryOp::Add, Operand::Array(&times), Operand::Scalar(&month)).is_ok());
}

#[test]
fn nan_compares_as_in_sql() {
    let a = make_row(Arc::new(Float32Array::from(vec![f32::NAN, 1.0])));
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
    let equal = binary(BinaryOp::Eq, Operand::Array(&a), Operand::Scalar(&nan)).unwrap();
    assert_eq!(decode_ragged(&equal), [Node::List(vec![Node::Bool(true), Node::Bool(false)])]);
}

#[test]
fn floats_are_changed_in_place_only_if_no_other_array_shares_them() {
    let number = |n| -> ArrayRef { Arc::new(Float32Array::from(vec![n])) };
    let made = || {
        let leaves = Float32Array::from(vec![Some(1.0), None, Some(3.0), Some(f32::NAN)]);
        let axis = Offsets::from_lengths([3, 1]).unwrap().into();
        RaggedArray::try_new(2, vec![axis], Arc::new(leaves)).unwrap()
    };
    let place = |a: &RaggedArray| a.leaves().as_primitive::<Float32Type>().values().as_ptr();
    for op in [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::Pow,
        BinaryOp::Maximum,
        BinaryOp::Gt,
    ] {
        let two = number(2.0);
        let expected = binary(op, Operand::Array(&made()), Operand::Scalar(&two)).unwrap();
        // The leaves belong to this array alone, so that arithmetic reuses their buffer.
        let own = made();
        let before = place(&own);
        let found = binary_owned(op, own, Operand::Scalar(&two)).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
        if matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div) {
            assert_eq!(place(&found), before, "{op:?}");
        }
        // Another array shares the leaves, and must not change.
        let whole = made();
        let found = binary_owned(op, whole.clone(), Operand::Scalar(&two)).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
        assert_alike(&decode_ragged(&whole), &decode_ragged(&made()));
        let found = binary_owned(op, whole.slice(1, 1).unwrap(), Operand::Scalar(&two)).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected.slice(1, 1).unwrap()));
        assert_alike(&decode_ragged(&whole), &decode_ragged(&made()));
        // The other operand is a null scalar or an array.
        let null = arrow::array::new_null_array(&DataType::Float32, 1);
        let expected = binary(op, Operand::Array(&made()), Operand::Scalar(&null)).unwrap();
        let found = binary_owned(op, made(), Operand::Scalar(&null)).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
        let expected = binary(op, Operand::Array(&made()), Operand::Array(&whole)).unwrap();
        let found = binary_owned(op, made(), Operand::Array(&whole)).unwrap();
        assert_alike(&decode_ragged(&found), &decode_ragged(&expected));
    }
    // The result has a wider type, so that the buffer cannot be reused.
    let wide: ArrayRef = Arc::new(Float64Array::from(vec![1e300]));
    let found = binary_owned(BinaryOp::Add, made(), Operand::Scalar(&wide)).unwrap();
    assert_eq!(found.leaf_type(), &DataType::Float64);
}

#[test]
fn a_scalar_may_be_the_left_or_the_right_operand() {
    let a = make_row(Arc::new(Float64Array::from(vec![Some(1.0), None, Some(4.0)])));
    let one: ArrayRef = Arc::new(Float64Array::from(vec![2.0]));
    for (op, right, left, both) in [
        (BinaryOp::Add, [3.0, 6.0], [3.0, 6.0], [2.0, 8.0]),
        (BinaryOp::Sub, [-1.0, 2.0], [1.0, -2.0], [0.0, 0.0]),
        (BinaryOp::Mul, [2.0, 8.0], [2.0, 8.0], [1.0, 16.0]),
        (BinaryOp::Div, [0.5, 2.0], [2.0, 0.5], [1.0, 1.0]),
    ] {
        let list =
            |v: [f64; 2]| [Node::List(vec![Node::Float(v[0]), Node::Null, Node::Float(v[1])])];
        let found = binary(op, Operand::Array(&a), Operand::Scalar(&one)).unwrap();
        assert_eq!(decode_ragged(&found), list(right), "{op:?}");
        let found = binary(op, Operand::Scalar(&one), Operand::Array(&a)).unwrap();
        assert_eq!(decode_ragged(&found), list(left), "{op:?}");
        let found = binary(op, Operand::Array(&a), Operand::Array(&a)).unwrap();
        assert_eq!(decode_ragged(&found), list(both), "{op:?}");
    }
}

#[test]
fn broadcasting_repeats_only_lists_of_one_element() {
    // `a` is [[1, 2], [3]]. `b` has an axis of size 1, which is broadcast; `a` is not copied.
    let axes = vec![Offsets::from_lengths([2, 1]).unwrap().into()];
    let a = RaggedArray::try_new(2, axes, make_ints(&[1, 2, 3])).unwrap();
    let one = vec![Layout::Uniform { size: 1, lists: 2 }.into()];
    let b = RaggedArray::try_new(2, one, make_ints(&[10, 20])).unwrap();
    for (x, y) in [(&a, &b), (&b, &a)] {
        let sum = binary(BinaryOp::Add, Operand::Array(x), Operand::Array(y)).unwrap();
        assert_eq!(sum.leaves().as_ref(), make_ints(&[11, 12, 23]).as_ref());
        shares_axes(&sum, &a);
    }
    // Each list of one element is broadcast by itself.
    let axes = vec![Offsets::from_lengths([1, 2]).unwrap().into()];
    let c = RaggedArray::try_new(2, axes, make_ints(&[1, 2, 3])).unwrap();
    let sum = binary(BinaryOp::Add, Operand::Array(&a), Operand::Array(&c)).unwrap();
    assert_eq!(sum.leaves().as_ref(), make_ints(&[2, 3, 5, 6]).as_ref());
    assert_eq!(sum.lengths(1).unwrap(), [2, 2]);
    let axes = vec![Offsets::from_lengths([3, 1]).unwrap().into()];
    let d = RaggedArray::try_new(2, axes, make_ints(&[1, 2, 3, 4])).unwrap();
    let e = binary(BinaryOp::Add, Operand::Array(&a), Operand::Array(&d)).unwrap_err().to_string();
    assert!(e.contains("list 0 of axis 1 (row 0) has 2 element(s) on the left and 3"), "{e}");
}

#[test]
fn powers_minimum_and_maximum_follow_their_types() {
    let a = make_row(make_ints(&[2, -3, 0, -1]));
    let of = |op, x: &RaggedArray, y: &ArrayRef| binary(op, Operand::Array(x), Operand::Scalar(y));
    assert_eq!(
        of(BinaryOp::Pow, &a, &make_ints(&[3])).unwrap(),
        make_row(make_ints(&[8, -27, 0, -1]))
    );
    assert_eq!(
        of(BinaryOp::Pow, &make_row(make_ints(&[1, 0, -1])), &make_ints(&[i64::MAX])).unwrap(),
        make_row(make_ints(&[1, 0, -1]))
    );
    // The greatest unsigned integer is not mistaken for -1.
    let greatest = make_row(Arc::new(UInt64Array::from(vec![u64::MAX])));
    let huge: ArrayRef = Arc::new(UInt64Array::from(vec![1u64 << 33]));
    let e = of(BinaryOp::Pow, &greatest, &huge).unwrap_err().to_string();
    assert!(e.contains("does not fit the integer type"), "{e}");
    let e = of(BinaryOp::Pow, &a, &make_ints(&[-1])).unwrap_err().to_string();
    assert!(e.contains("negative power"), "{e}");
    assert!(of(BinaryOp::Pow, &a, &make_ints(&[64])).unwrap_err().to_string().contains("wider"));
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let roots = of(BinaryOp::Pow, &make_row(make_ints(&[4, 9])), &half).unwrap();
    assert_eq!(roots, make_row(Arc::new(Float64Array::from(vec![2.0, 3.0]))));
    assert_eq!(
        of(BinaryOp::Minimum, &a, &make_ints(&[-1])).unwrap(),
        make_row(make_ints(&[-1, -3, -1, -1]))
    );
    assert_eq!(
        of(BinaryOp::Maximum, &a, &make_ints(&[-1])).unwrap(),
        make_row(make_ints(&[2, -1, 0, -1]))
    );
    let null = arrow::array::new_null_array(&DataType::Int64, 1);
    assert_eq!(of(BinaryOp::Maximum, &a, &null).unwrap().leaves().null_count(), 4);
    assert_eq!(of(BinaryOp::Pow, &a, &null).unwrap().leaves().null_count(), 4);
    let floats = make_row(Arc::new(Float32Array::from(vec![Some(f32::NAN), Some(2.0), None])));
    let least = of(BinaryOp::Minimum, &floats, &make_ints(&[1])).unwrap();
    let least = least.leaves().as_primitive::<Float32Type>();
    assert!(least.value(0).is_nan() && least.value(1) == 1.0 && least.is_null(2));
    let words: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["b"]));
    let texts =
        make_row(Arc::new(arrow::array::StringArray::from(vec![Some("a"), None, Some("c")])));
    let first = of(BinaryOp::Minimum, &texts, &words).unwrap();
    let expected = arrow::array::StringArray::from(vec![Some("a"), None, Some("b")]);
    assert_eq!(first.leaves().as_ref(), &expected as &dyn Array);
    let e = OperationTypes::new(
        BinaryOp::Pow,
        OperandType::Leaves(&DataType::Utf8),
        OperandType::Leaves(&DataType::Utf8),
    );
    assert!(e.is_err());
    assert_eq!(
        common_type(
            OperandType::Leaves(&DataType::UInt8),
            OperandType::Literal(&make_ints(&[300]))
        )
        .unwrap(),
        DataType::UInt16
    );
    let e = common_type(OperandType::Leaves(&DataType::Utf8), OperandType::Leaves(&DataType::Int8));
    assert!(e.unwrap_err().to_string().starts_with("a choice of two values"));
}
