//! Arithmetic, comparison and logic, leaf by leaf: the functions that operators on lists stand for.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef};

use super::args::{Call, Plan};
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use super::lists::Lists;
use crate::array::{RaggedArray, list_depth};
use crate::error::Result;
use crate::kernels::elementwise::{self, Op, Operand, OperandType, Types};
use crate::kernels::reduce::{self, Reduction};
use crate::kernels::times::cast_time;

/// Comparisons and logic take all values; arithmetic overflows or divides by zero.
const fn operator_fails(op: Op) -> Fails {
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::Pow => Fails::Values,
        _ => Fails::UnequalLengths,
    }
}

macro_rules! operator {
    ($id:ident, $op:expr, $name:literal, $infix:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(a, b)`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (2, 2),
            doc: Doc {
                section: Section::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(a, b)"), concat!("a ", $infix, " b")],
                args: OPERANDS,
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| planned(plan, $op),
            call: |call| computed(call, $op),
            fails: operator_fails($op),
            infix: Some($infix),
        };
    };
}

const OPERANDS: &[(&str, &str)] = &[
    ("a", "a list of any depth, or a single value (one per row, or written out)"),
    (
        "b",
        "the same; at least one of both is a list. Two lists have the same lengths, or the one with fewer levels has those of the outer levels: each of its values meets all below its place. A list of one element meets all elements of the other",
    ),
];

operator!(
    ADD,
    Op::Add,
    "ragged_add",
    "+",
    "The sum, value by value.",
    "NULL with anything is NULL. Integer overflow is an error, floats follow IEEE 754. With the operator a number that is written out takes the type of the values when it fits (`UInt16` codes stay `UInt16`), otherwise both sides widen as in numpy; the function takes types as they are (a written integer is `Int64`).",
    "`list_transform(a, lambda v: v + b)`, `list_transform(list_zip(a, b), lambda p: p[1] + p[2])`."
);
operator!(
    SUB,
    Op::Sub,
    "ragged_sub",
    "-",
    "The difference, value by value. Times minus times are durations.",
    "NULL with anything is NULL. Integer overflow is an error, floats follow IEEE 754. With the operator a number that is written out takes the type of the values when it fits (`UInt16` codes stay `UInt16`), otherwise both sides widen as in numpy; the function takes types as they are (a written integer is `Int64`).",
    "`list_transform(a, lambda v: v - b)`, `list_transform(list_zip(a, b), lambda p: p[1] - p[2])`."
);
operator!(
    MUL,
    Op::Mul,
    "ragged_mul",
    "*",
    "The product, value by value.",
    "NULL with anything is NULL. Integer overflow is an error, floats follow IEEE 754. With the operator a number that is written out takes the type of the values when it fits (`UInt16` codes stay `UInt16`), otherwise both sides widen as in numpy; the function takes types as they are (a written integer is `Int64`).",
    "`list_transform(a, lambda v: v * b)`, `list_transform(list_zip(a, b), lambda p: p[1] * p[2])`."
);
operator!(
    DIV,
    Op::Div,
    "ragged_div",
    "/",
    "The quotient, value by value; of integers the whole part, as for single values in SQL.",
    "NULL with anything is NULL. Division by an integer zero is an error, floats follow IEEE 754. With the operator a number that is written out takes the type of the values when it fits (`UInt16` codes stay `UInt16`), otherwise both sides widen as in numpy; the function takes types as they are (a written integer is `Int64`).",
    "`list_transform(a, lambda v: v / b)`, `list_transform(list_zip(a, b), lambda p: p[1] / p[2])`."
);
operator!(
    MOD,
    Op::Rem,
    "ragged_mod",
    "%",
    "The remainder, value by value, with the sign of the dividend.",
    "NULL with anything is NULL. Division by an integer zero is an error, floats follow IEEE 754. With the operator a number that is written out takes the type of the values when it fits (`UInt16` codes stay `UInt16`), otherwise both sides widen as in numpy; the function takes types as they are (a written integer is `Int64`).",
    "`list_transform(a, lambda v: v % b)`, `list_transform(list_zip(a, b), lambda p: p[1] % p[2])`."
);
operator!(
    EQ,
    Op::Eq,
    "ragged_eq",
    "=",
    "Whether values are equal, value by value: a mask. Between two lists `=` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v = b)`, `list_transform(list_zip(a, b), lambda p: p[1] = p[2])`."
);
operator!(
    NE,
    Op::NotEq,
    "ragged_ne",
    "<>",
    "Whether values differ, value by value: a mask. Between two lists `<>` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v <> b)`, `list_transform(list_zip(a, b), lambda p: p[1] <> p[2])`."
);
operator!(
    LT,
    Op::Lt,
    "ragged_lt",
    "<",
    "Whether values are less, value by value: a mask. Between two lists `<` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v < b)`, `list_transform(list_zip(a, b), lambda p: p[1] < p[2])`."
);
operator!(
    LE,
    Op::LtEq,
    "ragged_le",
    "<=",
    "Whether values are less or equal, value by value: a mask. Between two lists `<=` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v <= b)`, `list_transform(list_zip(a, b), lambda p: p[1] <= p[2])`."
);
operator!(
    GT,
    Op::Gt,
    "ragged_gt",
    ">",
    "Whether values are greater, value by value: a mask. Between two lists `>` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v > b)`, `list_transform(list_zip(a, b), lambda p: p[1] > p[2])`."
);
operator!(
    GE,
    Op::GtEq,
    "ragged_ge",
    ">=",
    "Whether values are greater or equal, value by value: a mask. Between two lists `>=` compares the lists as wholes, as DataFusion does; this function compares their values.",
    "NULL with anything is NULL: beside a NULL that is written out, every value is. NaN equals NaN and is greater than any number, and an integer and a float compare as 64-bit floats (2^53 + 1 equals 2^53 then), as everywhere in SQL here. A text that is written out is read as a date or time where the values are.",
    "`list_transform(a, lambda v: v >= b)`, `list_transform(list_zip(a, b), lambda p: p[1] >= p[2])`."
);
operator!(
    AND,
    Op::And,
    "ragged_and",
    "AND",
    "Both masks, value by value.",
    "In three-valued logic: false AND NULL is false. A list that is NULL on one side is NULL.",
    "`list_transform(a, lambda v: v AND b)`, `list_transform(list_zip(a, b), lambda p: p[1] AND p[2])`."
);
operator!(
    OR,
    Op::Or,
    "ragged_or",
    "OR",
    "Either mask, value by value.",
    "In three-valued logic: true OR NULL is true. A list that is NULL on one side is NULL.",
    "`list_transform(a, lambda v: v OR b)`, `list_transform(list_zip(a, b), lambda p: p[1] OR p[2])`."
);

/// `ragged_pow(a, b)`.
pub(super) static POW: Def = Def {
    name: "ragged_pow",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Elementwise,
        description: "The value to the power of the other. Integers stay integers. (`^` is no power here, but the exclusive or of integers, and not of lists.)",
        syntax: &["ragged_pow(a, b)"],
        args: OPERANDS,
        missing: "NULL with anything is NULL. Integer overflow and negative powers of integers are errors; floats follow IEEE 754.",
        duckdb: "`list_transform(a, lambda v: v ** b)`.",
        example: example!("ragged_pow"),
    },
    plan: |plan| planned(plan, Op::Pow),
    call: |call| computed(call, Op::Pow),
    fails: Fails::Values,
    infix: None,
};

/// `ragged_minimum(a, b)`.
pub(super) static MINIMUM: Def = Def {
    name: "ragged_minimum",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Elementwise,
        description: "The smaller of two values, value by value: `ragged_minimum(val, 100)` cuts off what is above. (`ragged_min` is the smallest value of a list.)",
        syntax: &["ragged_minimum(a, b)"],
        args: OPERANDS,
        missing: "NULL with anything is NULL; so is NaN NaN, as in numpy.",
        duckdb: "`list_transform(a, lambda v: least(v, b))`.",
        example: example!("ragged_minimum"),
    },
    plan: |plan| planned(plan, Op::Minimum),
    call: |call| computed(call, Op::Minimum),
    fails: Fails::Values,
    infix: None,
};

/// `ragged_maximum(a, b)`.
pub(super) static MAXIMUM: Def = Def {
    name: "ragged_maximum",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Elementwise,
        description: "The larger of two values, value by value: `ragged_maximum(val, 0)` cuts off what is below. (`ragged_max` is the largest value of a list.)",
        syntax: &["ragged_maximum(a, b)"],
        args: OPERANDS,
        missing: "NULL with anything is NULL; so is NaN NaN, as in numpy.",
        duckdb: "`list_transform(a, lambda v: greatest(v, b))`.",
        example: example!("ragged_maximum"),
    },
    plan: |plan| planned(plan, Op::Maximum),
    call: |call| computed(call, Op::Maximum),
    fails: Fails::Values,
    infix: None,
};

/// `ragged_xor(a, b)`.
pub(super) static XOR: Def = Def {
    name: "ragged_xor",
    aliases: &[],
    arity: (2, 2),
    doc: Doc {
        section: Section::Elementwise,
        description: "Whether exactly one of both masks is true, value by value.",
        syntax: &["ragged_xor(a, b)"],
        args: OPERANDS,
        missing: "NULL with anything is NULL. A list that is NULL on one side is NULL.",
        duckdb: "`list_transform(a, lambda v: xor(v, b))`.",
        example: example!("ragged_xor"),
    },
    plan: |plan| planned(plan, Op::Xor),
    call: |call| computed(call, Op::Xor),
    fails: Fails::Values,
    infix: None,
};

/// Whether an argument is a single value that is known when the query is planned.
fn is_list(data_type: &DataType) -> bool {
    list_depth(data_type) > 0
}

fn planned(plan: &Plan<'_>, op: Op) -> Result<FieldRef> {
    let (a, b) = (plan.data_type(0), plan.data_type(1));
    for i in [0, 1] {
        if plan.is_list_view(i) {
            plan.lists(i)?;
        }
    }
    let (left, right) = (Lists::of(a), Lists::of(b));
    if left.depth() + right.depth() == 0 {
        return Err(plan.refuse(
            0,
            format!("and argument 2 are single values; one side of {} must be a list", op.symbol()),
        ));
    }
    let out = types(plan, op, &left, &right)?.output().clone();
    // The side with more levels gives the lists, and both a say in whether they are large.
    let (deep, other) =
        if left.depth() >= right.depth() { (&left, &right) } else { (&right, &left) };
    Ok(nullable(deep.widened_by(other).plain_leaf(out)))
}

/// Types of both sides. A comparison looks at a literal's value, which cannot change the type of
/// its result; arithmetic looks at types only, so that folding a constant changes nothing.
fn types(plan: &Plan<'_>, op: Op, left: &Lists, right: &Lists) -> Result<Types> {
    types_at(plan, op, (0, left), (1, right))
}

/// Refuses two arguments that do not compare.
pub(super) fn comparable(plan: &Plan<'_>, op: Op, a: usize, b: usize) -> Result<()> {
    let (left, right) = (Lists::of(plan.data_type(a)), Lists::of(plan.data_type(b)));
    types_at(plan, op, (a, &left), (b, &right)).map(|_| ())
}

fn types_at(
    plan: &Plan<'_>,
    op: Op,
    (i, left): (usize, &Lists),
    (j, right): (usize, &Lists),
) -> Result<Types> {
    let literal = |i: usize| -> Result<Option<ArrayRef>> {
        match plan.known(i) {
            Some(v) if op.is_comparison() && !is_list(plan.data_type(i)) => {
                Ok(Some(v.to_array_of_size(1)?))
            }
            _ => Ok(None),
        }
    };
    let (a, b) = (literal(i)?, literal(j)?);
    fn side<'a>(literal: Option<&'a ArrayRef>, leaf: &'a DataType) -> OperandType<'a> {
        literal.map_or(OperandType::Leaves(leaf), OperandType::Literal)
    }
    Types::new(op, side(a.as_ref(), left.leaf()), side(b.as_ref(), right.leaf()))
}

/// One side of an operation in a batch.
pub(super) enum Side {
    Each(RaggedArray),
    One(ArrayRef),
}

impl Side {
    /// An argument: one value where it is the same for all rows.
    pub(super) fn of(call: &Call<'_>, i: usize) -> Result<Self> {
        match call.constant(i) {
            Some(value) if !is_list(&value.data_type()) => {
                Ok(Self::One(value.to_array_of_size(1)?))
            }
            _ => Ok(Self::Each(call.ragged(i)?)),
        }
    }

    /// As [`of`](Self::of), for one look.
    fn taken(call: &Call<'_>, i: usize) -> Result<Self> {
        match call.constant(i) {
            Some(value) if !is_list(&value.data_type()) => Self::of(call, i),
            _ => Ok(Self::Each(call.take_ragged(i)?)),
        }
    }
}

fn computed(call: &Call<'_>, op: Op) -> Result<ArrayRef> {
    let mut left = Side::taken(call, 0)?;
    let mut right = Side::of(call, 1)?;
    if op.is_arithmetic() {
        let types = Types::new(
            op,
            OperandType::Leaves(left.data_type()),
            OperandType::Leaves(right.data_type()),
        )?;
        left = left.cast(types.left())?;
        right = right.cast(types.right())?;
    }
    call.lists(&match left {
        // What `v * 2` made is changed by the `+ 1` behind it.
        Side::Each(left) if matches!(right, Side::One(_)) => {
            elementwise::binary_owned(op, left, right.operand())?
        }
        left => elementwise::binary(op, left.operand(), right.operand())?,
    })
}

impl Side {
    pub(super) fn data_type(&self) -> &DataType {
        match self {
            Self::Each(a) => a.leaf_type(),
            Self::One(v) => v.data_type(),
        }
    }

    pub(super) fn cast(self, to: &DataType) -> Result<Self> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |values: &ArrayRef| match cast_time(values, to) {
            Some(exact) => exact,
            None => Ok(cast_with_options(values, to, &options)?),
        };
        Ok(match self {
            same if same.data_type() == to => same,
            Self::Each(a) => Self::Each(a.with_leaves(cast(a.leaves())?)?),
            Self::One(v) => Self::One(cast(&v)?),
        })
    }

    pub(super) fn operand(&self) -> Operand<'_> {
        match self {
            Self::Each(a) => Operand::Array(a),
            Self::One(v) => Operand::Scalar(v),
        }
    }
}

/// A mask, with leaves of type Null as booleans that are all null.
pub(super) fn booleans(mask: &RaggedArray) -> Result<RaggedArray> {
    match mask.leaf_type().is_null() {
        true => mask.with_leaves(cast(mask.leaves(), &DataType::Boolean)?),
        false => Ok(mask.clone()),
    }
}

/// `ragged_neg(x)`.
pub(super) static NEG: Def = Def {
    name: "ragged_neg",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: Section::Elementwise,
        description: "The negative of every value. (Unary minus does not work on lists.)",
        syntax: &["ragged_neg(x)"],
        args: &[("x", "a list of any depth of signed numbers or durations")],
        missing: "NULL stays NULL. Unsigned integers are refused (cast them first); the smallest integer of a type has no negative, which is an error.",
        duckdb: "`list_transform(x, lambda v: -v)`.",
        example: example!("ragged_neg"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let leaf = lists.leaf();
        let signed = leaf.is_numeric() && !leaf.is_unsigned_integer();
        if !signed && !matches!(leaf, DataType::Duration(_) | DataType::Interval(_)) {
            return Err(plan.refuse(
                0,
                format!(
                    "must be a list of signed numbers; its values are {leaf} (cast unsigned integers to a signed type first)"
                ),
            ));
        }
        Ok(nullable(lists.plain_leaf(leaf.clone())))
    },
    call: |call| call.lists(&elementwise::neg(&call.ragged(0)?)?),
    fails: Fails::Values,
    infix: None,
};

/// `ragged_not(mask)`.
pub(super) static NOT: Def = Def {
    name: "ragged_not",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: Section::Elementwise,
        description: "The opposite of every truth value. (`NOT` does not work on lists.)",
        syntax: &["ragged_not(mask)"],
        args: &[("mask", "a list of any depth of booleans")],
        missing: "NULL stays NULL.",
        duckdb: "`list_transform(mask, lambda v: NOT v)`.",
        example: example!("ragged_not"),
    },
    plan: |plan| Ok(nullable(plan.boolean_lists(0)?.plain_leaf(DataType::Boolean))),
    call: |call| call.lists(&elementwise::not(&booleans(&call.ragged(0)?)?)?),
    fails: Fails::Never,
    infix: None,
};

const MASK_ARGS: &[(&str, &str)] = &[
    ("mask", "a list of any depth of booleans"),
    (
        "axis",
        "the axis that goes, written out: -1 gives one answer per innermost list; without it one per row. 0, the rows, is refused: use bool_or and bool_and over the result",
    ),
];

/// `ragged_any(mask [, axis])`.
pub(super) static ANY: Def = Def {
    name: "ragged_any",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Reduce,
        description: "Whether any value of the mask is true. With axis -1 it makes a mask of whole lists: `ragged_filter(codes, ragged_any(codes == 7, -1))` are the visits with code 7.",
        syntax: &["ragged_any(mask [, axis])"],
        args: MASK_ARGS,
        missing: "NULL values are skipped; of nothing it is false, of a NULL list NULL.",
        duckdb: "`list_bool_or(mask)`.",
        example: example!("ragged_any"),
    },
    plan: quantified,
    call: |call| quantify(call, Reduction::Any),
    fails: Fails::Never,
    infix: None,
};

/// `ragged_all(mask [, axis])`.
pub(super) static ALL: Def = Def {
    name: "ragged_all",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Reduce,
        description: "Whether all values of the mask are true.",
        syntax: &["ragged_all(mask [, axis])"],
        args: MASK_ARGS,
        missing: "NULL values are skipped; of nothing it is true, of a NULL list NULL.",
        duckdb: "`list_bool_and(mask)`.",
        example: example!("ragged_all"),
    },
    plan: quantified,
    call: |call| quantify(call, Reduction::All),
    fails: Fails::Never,
    infix: None,
};

fn quantified(plan: &Plan<'_>) -> Result<FieldRef> {
    let lists = plan.boolean_lists(0)?;
    let axis = plan.axis(1, &lists, "use bool_or or bool_and over its result instead")?;
    Ok(nullable(match axis {
        None => DataType::Boolean,
        Some(axis) => lists.plain().without(axis - 1, DataType::Boolean),
    }))
}

fn quantify(call: &Call<'_>, how: Reduction) -> Result<ArrayRef> {
    call.lists(&reduce::reduce(&call.ragged(0)?, how, call.integer(1))?)
}
