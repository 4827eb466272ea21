//! Arithmetic, comparison and logic on leaves (innermost values): the functions that operators on
//! lists call.

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef};
use serrate_core::internal::cast_strictly;
use serrate_core::internal::times::cast_time;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::NestedListType;
use super::reduce::compute_reduction;
use super::unsigned::WIDE;
use crate::array::{RaggedArray, list_depth};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{self, BinaryOp, Operand, OperandType, OperationTypes};
use crate::kernels::reduce::Reduction;

/// Returns when an operator can fail: on lists of unequal lengths and, for arithmetic, on overflow.
const fn find_operator_fails(op: BinaryOp) -> FailureCase {
    match op {
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Pow => FailureCase::Values,
        _ => FailureCase::UnequalLengths,
    }
}

macro_rules! operator {
    ($id:ident, $op:expr, $name:literal, $infix:literal, $description:literal, $missing:expr, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(a, b)`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (2, 2),
            doc: Doc {
                section: FunctionSection::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(a, b)"), concat!("a ", $infix, " b")],
                args: OPERANDS,
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| plan_operator(plan, $op),
            call: |call| compute_operator(call, $op),
            fails: find_operator_fails($op),
            infix: Some($infix),
            facts: FunctionFacts {
                chains: matches!(
                    $op,
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem
                ),
                ..FunctionFacts::OPERATES
            },
            ..Def::DEFAULTS
        };
    };
}

const OVERFLOW: &str = "If either value is NULL, the result is NULL. Integer overflow is an error; floats follow IEEE 754. With the operator, a numeric literal takes the type of the values if it fits (`UInt16` codes stay `UInt16`); otherwise both sides are widened as in numpy, but a `UInt64` and a signed integer become `DECIMAL(20, 0)`, as between scalars. The function uses the types as they are (an integer literal is `Int64`).";

const DIVISION: &str = "If either value is NULL, the result is NULL. Division by an integer zero is an error; floats follow IEEE 754. With the operator, a numeric literal takes the type of the values if it fits (`UInt16` codes stay `UInt16`); otherwise both sides are widened as in numpy, but a `UInt64` and a signed integer become `DECIMAL(20, 0)`, as between scalars. The function uses the types as they are (an integer literal is `Int64`).";

const COMPARISON: &str = "If either value is NULL, the result is NULL, so comparing with a literal NULL returns only NULL. NaN equals NaN and is greater than any number. An integer and a float compare as 64-bit floats (so that 2^53 + 1 equals 2^53), as everywhere in SQL here. A string literal is parsed as a date or time if the values are dates or times.";

const OPERANDS: &[(&str, &str)] = &[
    ("a", "a list of any depth, or a scalar (a column or a literal)"),
    (
        "b",
        "the same; `a` or `b` must be a list. Two lists must have the same lengths on the levels they share. If one has fewer levels, each of its values is combined with all values below its position. A list of one element is combined with every element of the other list",
    ),
];

operator!(
    ADD,
    BinaryOp::Add,
    "ragged_add",
    "+",
    "Returns the sum, value by value.",
    OVERFLOW,
    "`list_transform(a, lambda v: v + b)`, `list_transform(list_zip(a, b), lambda p: p[1] + p[2])`."
);
operator!(
    SUB,
    BinaryOp::Sub,
    "ragged_sub",
    "-",
    "Returns the difference, value by value. The difference of times is a duration.",
    OVERFLOW,
    "`list_transform(a, lambda v: v - b)`, `list_transform(list_zip(a, b), lambda p: p[1] - p[2])`."
);
operator!(
    MUL,
    BinaryOp::Mul,
    "ragged_mul",
    "*",
    "Returns the product, value by value. The product of a span of time and a number is a span.",
    OVERFLOW,
    "`list_transform(a, lambda v: v * b)`, `list_transform(list_zip(a, b), lambda p: p[1] * p[2])`."
);
operator!(
    DIV,
    BinaryOp::Div,
    "ragged_div",
    "/",
    "Returns the quotient, value by value. Integers give the integer quotient, as scalars do in SQL. A span of time divided by a number is a span, and by a span a `Float64`.",
    DIVISION,
    "`list_transform(a, lambda v: v / b)`, `list_transform(list_zip(a, b), lambda p: p[1] / p[2])`."
);
operator!(
    MOD,
    BinaryOp::Rem,
    "ragged_mod",
    "%",
    "Returns the remainder, value by value, with the sign of the dividend.",
    DIVISION,
    "`list_transform(a, lambda v: v % b)`, `list_transform(list_zip(a, b), lambda p: p[1] % p[2])`."
);
operator!(
    EQ,
    BinaryOp::Eq,
    "ragged_eq",
    "=",
    "Returns a mask of the values that are equal. Between two lists, the operator `=` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v = b)`, `list_transform(list_zip(a, b), lambda p: p[1] = p[2])`."
);
operator!(
    NE,
    BinaryOp::NotEq,
    "ragged_ne",
    "<>",
    "Returns a mask of the values that differ. Between two lists, the operator `<>` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v <> b)`, `list_transform(list_zip(a, b), lambda p: p[1] <> p[2])`."
);
operator!(
    LT,
    BinaryOp::Lt,
    "ragged_lt",
    "<",
    "Returns a mask of the values of `a` that are less than those of `b`. Between two lists, the operator `<` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v < b)`, `list_transform(list_zip(a, b), lambda p: p[1] < p[2])`."
);
operator!(
    LE,
    BinaryOp::LtEq,
    "ragged_le",
    "<=",
    "Returns a mask of the values of `a` that are less than or equal to those of `b`. Between two lists, the operator `<=` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v <= b)`, `list_transform(list_zip(a, b), lambda p: p[1] <= p[2])`."
);
operator!(
    GT,
    BinaryOp::Gt,
    "ragged_gt",
    ">",
    "Returns a mask of the values of `a` that are greater than those of `b`. Between two lists, the operator `>` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v > b)`, `list_transform(list_zip(a, b), lambda p: p[1] > p[2])`."
);
operator!(
    GE,
    BinaryOp::GtEq,
    "ragged_ge",
    ">=",
    "Returns a mask of the values of `a` that are greater than or equal to those of `b`. Between two lists, the operator `>=` compares the lists as a whole, as in DataFusion; this function compares value by value.",
    COMPARISON,
    "`list_transform(a, lambda v: v >= b)`, `list_transform(list_zip(a, b), lambda p: p[1] >= p[2])`."
);
operator!(
    AND,
    BinaryOp::And,
    "ragged_and",
    "AND",
    "Returns the logical AND of two masks, value by value.",
    "The logic is three-valued: false AND NULL is false. A list that is NULL on one side is NULL.",
    "`list_transform(a, lambda v: v AND b)`, `list_transform(list_zip(a, b), lambda p: p[1] AND p[2])`."
);
operator!(
    OR,
    BinaryOp::Or,
    "ragged_or",
    "OR",
    "Returns the logical OR of two masks, value by value.",
    "The logic is three-valued: true OR NULL is true. A list that is NULL on one side is NULL.",
    "`list_transform(a, lambda v: v OR b)`, `list_transform(list_zip(a, b), lambda p: p[1] OR p[2])`."
);

pub(super) static POW: Def = Def {
    name: "ragged_pow",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns `a` to the power of `b`, value by value. Integers stay integers: a `UInt64` and a signed integer give the type of `a`. (The operator `^` is the exclusive or of two integers and does not work on lists.)",
        syntax: &["ragged_pow(a, b)"],
        args: OPERANDS,
        missing: "If either value is NULL, the result is NULL. Integer overflow and negative powers of integers are errors; floats follow IEEE 754.",
        duckdb: "`list_transform(a, lambda v: v ** b)`.",
        example: example!("ragged_pow"),
    },
    plan: |plan| plan_operator(plan, BinaryOp::Pow),
    call: |call| compute_operator(call, BinaryOp::Pow),
    facts: FunctionFacts { instead_of: &["power"], ..FunctionFacts::OPERATES },
    ..Def::DEFAULTS
};

pub(super) static MINIMUM: Def = Def {
    name: "ragged_minimum",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the smaller of two values, value by value. `ragged_minimum(val, 100)` limits values to at most 100. (`ragged_min` returns the smallest value of a list.)",
        syntax: &["ragged_minimum(a, b)"],
        args: OPERANDS,
        missing: "If either value is NULL, the result is NULL. Otherwise, if either value is NaN, the result is NaN, as in numpy. The types are widened as in numpy, but the smaller of a `UInt64` and a signed integer is an `Int64`.",
        duckdb: "`list_transform(a, lambda v: least(v, b))`.",
        example: example!("ragged_minimum"),
    },
    plan: |plan| plan_operator(plan, BinaryOp::Minimum),
    call: |call| compute_operator(call, BinaryOp::Minimum),
    facts: FunctionFacts { instead_of: &["least"], ..FunctionFacts::OPERATES },
    ..Def::DEFAULTS
};

pub(super) static MAXIMUM: Def = Def {
    name: "ragged_maximum",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the larger of two values, value by value. `ragged_maximum(val, 0)` limits values to at least 0. (`ragged_max` returns the largest value of a list.)",
        syntax: &["ragged_maximum(a, b)"],
        args: OPERANDS,
        missing: "If either value is NULL, the result is NULL. Otherwise, if either value is NaN, the result is NaN, as in numpy. The types are widened as in numpy, but the larger of a `UInt64` and a signed integer is a `UInt64`.",
        duckdb: "`list_transform(a, lambda v: greatest(v, b))`.",
        example: example!("ragged_maximum"),
    },
    plan: |plan| plan_operator(plan, BinaryOp::Maximum),
    call: |call| compute_operator(call, BinaryOp::Maximum),
    facts: FunctionFacts { instead_of: &["greatest"], ..FunctionFacts::OPERATES },
    ..Def::DEFAULTS
};

pub(super) static XOR: Def = Def {
    name: "ragged_xor",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns a mask that is true where exactly one of two masks is true.",
        syntax: &["ragged_xor(a, b)"],
        args: OPERANDS,
        missing: "If either value is NULL, the result is NULL. A list that is NULL on one side is NULL.",
        duckdb: "`list_transform(a, lambda v: v <> b)`.",
        example: example!("ragged_xor"),
    },
    plan: |plan| plan_operator(plan, BinaryOp::Xor),
    call: |call| compute_operator(call, BinaryOp::Xor),
    facts: FunctionFacts::OPERATES,
    ..Def::DEFAULTS
};

fn is_list(data_type: &DataType) -> bool {
    list_depth(data_type) > 0
}

fn plan_operator(plan: &CallPlan<'_>, op: BinaryOp) -> Result<FieldRef> {
    let (a, b) = (plan.data_type(0), plan.data_type(1));
    for i in [0, 1] {
        if plan.is_list_view(i) {
            plan.require_lists(i)?;
        }
    }
    let (left, right) = (NestedListType::from_type(a), NestedListType::from_type(b));
    if left.depth() + right.depth() == 0 {
        return Err(plan.refuse_call(format!(
            "argument 1 is a scalar, as is argument 2; one side of {} must be a list",
            op.symbol()
        )));
    }
    let out = find_result_type(plan, op, &left, &right)?;
    // The result has the levels of the deeper operand. A level is a LargeList if it is one in
    // either operand.
    let (deep, other) =
        if left.depth() >= right.depth() { (&left, &right) } else { (&right, &left) };
    Ok(make_nullable(deep.widen_by(other).make_plain_leaf(out)))
}

fn find_result_type(
    plan: &CallPlan<'_>,
    op: BinaryOp,
    left: &NestedListType,
    right: &NestedListType,
) -> Result<DataType> {
    if op == BinaryOp::Pow && is_unsigned_with_signed(left.leaf(), right.leaf()) {
        return Ok(left.leaf().clone());
    }
    // Planning asks for the type of a call dozens of times, and most calls compare numbers.
    let is_number = |t: &DataType| t.is_integer() || t.is_floating();
    if op.is_comparison() && is_number(left.leaf()) && is_number(right.leaf()) {
        debug_assert!(
            find_operand_types(plan, op, left, right)
                .is_ok_and(|types| *types.output() == DataType::Boolean)
        );
        return Ok(DataType::Boolean);
    }
    if !needs_decimals(op, left.leaf(), right.leaf()) {
        return Ok(find_operand_types(plan, op, left, right)?.output().clone());
    }
    if let Some(exact) = find_exact_type(op, left.leaf()) {
        return Ok(exact);
    }
    let wide = WIDE;
    let types = OperationTypes::new(op, OperandType::Leaves(&wide), OperandType::Leaves(&wide))?;
    Ok(types.output().clone())
}

/// Whether `op` is arithmetic other than a power, or chooses one of its operands, and these are a
/// UInt64 and a signed integer. The caller then computes on decimals, as DataFusion does for
/// scalars: the kernels would widen both operands to Float64, as numpy does, and so round integers
/// above 2^53.
pub(super) fn needs_decimals(op: BinaryOp, a: &DataType, b: &DataType) -> bool {
    op.is_arithmetic() && op != BinaryOp::Pow && is_unsigned_with_signed(a, b)
}

fn is_unsigned_with_signed(a: &DataType, b: &DataType) -> bool {
    matches!((a, b), (DataType::UInt64, t) | (t, DataType::UInt64) if t.is_signed_integer())
}

/// Casts a power to the integer type of its base, because the result has the type of the base.
fn cast_power(power: BatchOperand, base: &DataType) -> Result<BatchOperand> {
    power.cast_leaves(base).map_err(|e| {
        Error::invalid(format!(
            "a power is negative or does not fit the type {base} of the base ({e}); cast the base or the power to DOUBLE"
        ))
    })
}

/// Returns the type to which the decimal results of an operation on a UInt64 and a signed integer
/// are cast, or `None` if they stay decimals. The type holds every result, because no quotient is
/// larger than its dividend, the larger of the two operands is never negative, and the smaller one
/// never exceeds the signed one.
fn find_exact_type(op: BinaryOp, left: &DataType) -> Option<DataType> {
    match op {
        BinaryOp::Div if left.is_signed_integer() => Some(DataType::Int64),
        BinaryOp::Div => Some(WIDE),
        BinaryOp::Maximum => Some(DataType::UInt64),
        BinaryOp::Minimum => Some(DataType::Int64),
        _ => None,
    }
}

/// Truncates the quotients of decimals without fraction to integers, and casts them to `to`. Arrow
/// computes quotients with 4 digits after the point and truncates, not rounds, further digits. So
/// 0.99999 becomes 0.9999 and not 1, and the truncation to an integer is exact.
fn truncate_quotients(quotients: &RaggedArray, to: &DataType) -> Result<RaggedArray> {
    let leaves = quotients.leaves();
    let DataType::Decimal128(_, scale) = leaves.data_type() else { return Ok(quotients.clone()) };
    let unit = 10_i128.pow(scale.unsigned_abs().into());
    let whole: Decimal128Array =
        leaves.as_primitive::<Decimal128Type>().unary(|quotient| quotient / unit);
    let whole = whole.with_precision_and_scale(38, 0)?;
    quotients.with_leaves(cast_strictly(&whole, to)?)
}

/// Returns the types to which both operands are cast. In a comparison, they can depend on the value
/// of a literal, because the result is boolean in any case. In arithmetic, they depend only on the
/// types of the operands, so that constant folding does not change the type of the result.
fn find_operand_types(
    plan: &CallPlan<'_>,
    op: BinaryOp,
    left: &NestedListType,
    right: &NestedListType,
) -> Result<OperationTypes> {
    find_types_at(plan, op, (0, left), (1, right))
}

pub(super) fn check_comparable(
    plan: &CallPlan<'_>,
    op: BinaryOp,
    a: usize,
    b: usize,
) -> Result<()> {
    let (left, right) = (
        NestedListType::from_type(plan.data_type(a)),
        NestedListType::from_type(plan.data_type(b)),
    );
    find_types_at(plan, op, (a, &left), (b, &right)).map(|_| ())
}

fn find_types_at(
    plan: &CallPlan<'_>,
    op: BinaryOp,
    (i, left): (usize, &NestedListType),
    (j, right): (usize, &NestedListType),
) -> Result<OperationTypes> {
    let literal = |i: usize| -> Result<Option<ArrayRef>> {
        match plan.find_known_literal(i) {
            Some(v) if op.is_comparison() && !is_list(plan.data_type(i)) => {
                Ok(Some(v.to_array_of_size(1)?))
            }
            _ => Ok(None),
        }
    };
    let (a, b) = (literal(i)?, literal(j)?);
    fn build_operand_type<'a>(
        literal: Option<&'a ArrayRef>,
        leaf: &'a DataType,
    ) -> OperandType<'a> {
        literal.map_or(OperandType::Leaves(leaf), OperandType::Literal)
    }
    OperationTypes::new(
        op,
        build_operand_type(a.as_ref(), left.leaf()),
        build_operand_type(b.as_ref(), right.leaf()),
    )
}

pub(super) enum BatchOperand {
    Each(RaggedArray),
    One(ArrayRef),
}

impl BatchOperand {
    /// Reads argument `i`: one value if it is the same for all rows, else an array.
    pub(super) fn from_argument(call: &BatchCall<'_>, i: usize) -> Result<Self> {
        match call.find_constant(i) {
            Some(value) if !is_list(&value.data_type()) => {
                Ok(Self::One(value.to_array_of_size(1)?))
            }
            _ => Ok(Self::Each(call.read_ragged(i)?)),
        }
    }

    /// Reads argument `i`: one value if it is the same for all rows, else an array, which is
    /// removed from the call, so that the caller can change it in place.
    fn take_from(call: &BatchCall<'_>, i: usize) -> Result<Self> {
        match call.find_constant(i) {
            Some(value) if !is_list(&value.data_type()) => Self::from_argument(call, i),
            _ => Ok(Self::Each(call.take_ragged(i)?)),
        }
    }
}

fn compute_operator(call: &BatchCall<'_>, op: BinaryOp) -> Result<ArrayRef> {
    let mut left = BatchOperand::take_from(call, 0)?;
    let mut right = BatchOperand::from_argument(call, 1)?;
    let mut exact = None;
    if needs_decimals(op, left.data_type(), right.data_type()) {
        exact = find_exact_type(op, left.data_type());
        left = left.cast_leaves(&WIDE)?;
        right = right.cast_leaves(&WIDE)?;
    } else if op == BinaryOp::Pow && is_unsigned_with_signed(left.data_type(), right.data_type()) {
        right = cast_power(right, left.data_type())?;
    } else if op.is_arithmetic() {
        let types = OperationTypes::new(
            op,
            OperandType::Leaves(left.data_type()),
            OperandType::Leaves(right.data_type()),
        )?;
        left = left.cast_leaves(types.left())?;
        right = right.cast_leaves(types.right())?;
    }
    let found = match left {
        // If the right operand is one value, the operator changes the array of the left operand in
        // place, such as the result of `v * 2` in `v * 2 + 1`.
        BatchOperand::Each(left) if matches!(right, BatchOperand::One(_)) => {
            elementwise::binary_owned(op, left, right.as_operand())?
        }
        left => elementwise::binary(op, left.as_operand(), right.as_operand())?,
    };
    call.to_lists(&match exact {
        Some(to) if op == BinaryOp::Div => truncate_quotients(&found, &to)?,
        Some(to) => found.with_leaves(cast_strictly(found.leaves(), &to)?)?,
        None => found,
    })
}

impl BatchOperand {
    pub(super) fn data_type(&self) -> &DataType {
        match self {
            Self::Each(a) => a.leaf_type(),
            Self::One(v) => v.data_type(),
        }
    }

    pub(super) fn cast_leaves(self, to: &DataType) -> Result<Self> {
        let cast = |values: &ArrayRef| match cast_time(values, to) {
            Some(exact) => exact,
            None => Ok(cast_strictly(values, to)?),
        };
        Ok(match self {
            same if same.data_type() == to => same,
            Self::Each(a) => Self::Each(a.with_leaves(cast(a.leaves())?)?),
            Self::One(v) => Self::One(cast(&v)?),
        })
    }

    pub(super) fn as_operand(&self) -> Operand<'_> {
        match self {
            Self::Each(a) => Operand::Array(a),
            Self::One(v) => Operand::Scalar(v),
        }
    }
}

/// Returns a mask with boolean leaves. Leaves of type Null become NULL booleans.
pub(super) fn as_booleans(mask: &RaggedArray) -> Result<RaggedArray> {
    match mask.leaf_type().is_null() {
        true => mask.with_leaves(cast(mask.leaves(), &DataType::Boolean)?),
        false => Ok(mask.clone()),
    }
}

pub(super) static NEG: Def = Def {
    name: "ragged_neg",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the negative of each value. (Unary minus does not work on lists.)",
        syntax: &["ragged_neg(x)"],
        args: &[("x", "a list of any depth of signed numbers or durations")],
        missing: "NULL values stay NULL. Unsigned integers are refused: cast them first. The smallest integer of a type has no negative, which is an error.",
        duckdb: "`list_transform(x, lambda v: -v)`.",
        example: example!("ragged_neg"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let leaf = lists.leaf();
        let signed = leaf.is_numeric() && !leaf.is_unsigned_integer();
        if !signed && !matches!(leaf, DataType::Duration(_) | DataType::Interval(_)) {
            return Err(plan.refuse_call(format!(
                "argument 1 must be a list of signed numbers; its values are {leaf}, so cast them first: ragged_cast(x, 'BIGINT')"
            )));
        }
        Ok(make_nullable(lists.make_plain_leaf(leaf.clone())))
    },
    call: |call| call.to_lists(&elementwise::neg(&call.read_ragged(0)?)?),
    ..Def::DEFAULTS
};

pub(super) static NOT: Def = Def {
    name: "ragged_not",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns the logical negation of each value. (`NOT` does not work on lists.)",
        syntax: &["ragged_not(mask)"],
        args: &[("mask", "a list of any depth of booleans")],
        missing: "NULL values stay NULL.",
        duckdb: "`list_transform(mask, lambda v: NOT v)`.",
        example: example!("ragged_not"),
    },
    plan: |plan| Ok(make_nullable(plan.find_boolean_lists(0)?.make_plain_leaf(DataType::Boolean))),
    call: |call| call.to_lists(&elementwise::not(&as_booleans(&call.read_ragged(0)?)?)?),
    fails: FailureCase::Never,
    ..Def::DEFAULTS
};

const MASK_ARGS: &[(&str, &str)] = &[
    ("mask", "a list of any depth of booleans"),
    (
        "axis",
        "the axis to reduce, a literal: -1 returns one boolean per innermost list. Without it, the result is one boolean per row. Axis 0, the rows, is refused: use bool_or and bool_and over the result",
    ),
];

pub(super) static ANY: Def = Def {
    name: "ragged_any",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Reduce,
        description: "Returns whether any value of the mask is true. With axis -1, the result is a mask of whole lists: `ragged_filter(codes, ragged_any(codes == 7, -1))` returns the visits with code 7.",
        syntax: &["ragged_any(mask [, axis])"],
        args: MASK_ARGS,
        missing: "NULL values are skipped. The result is false if there are no values, and NULL for a NULL list.",
        duckdb: "`list_bool_or(mask)`.",
        example: example!("ragged_any"),
    },
    plan: plan_quantifier,
    call: |call| compute_reduction(call, Reduction::Any),
    fails: FailureCase::Never,
    facts: FunctionFacts { instead_of: &["bool_or"], ..FunctionFacts::REDUCES },
    ..Def::DEFAULTS
};

pub(super) static ALL: Def = Def {
    name: "ragged_all",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Reduce,
        description: "Returns whether all values of the mask are true.",
        syntax: &["ragged_all(mask [, axis])"],
        args: MASK_ARGS,
        missing: "NULL values are skipped. The result is true if there are no values, and NULL for a NULL list.",
        duckdb: "`list_bool_and(mask)`.",
        example: example!("ragged_all"),
    },
    plan: plan_quantifier,
    call: |call| compute_reduction(call, Reduction::All),
    fails: FailureCase::Never,
    facts: FunctionFacts { instead_of: &["bool_and"], ..FunctionFacts::REDUCES },
    ..Def::DEFAULTS
};

fn plan_quantifier(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let lists = plan.find_boolean_lists(0)?;
    let axis = plan.axis(1, &lists, "use bool_or or bool_and over its result instead")?;
    Ok(make_nullable(match axis {
        None => DataType::Boolean,
        Some(axis) => lists.to_plain_fields().remove_level(axis - 1, DataType::Boolean),
    }))
}
