//! Functions of one value, applied to each leaf (innermost value) of nested lists.

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};

use super::args::CallPlan;
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::unary::{self, UnaryOp};

const X: (&str, &str) = ("x", "a list of any depth of numbers");

/// Returns when a unary function can fail: `-` and `abs` fail for the smallest integer of a type.
const fn find_unary_fails(how: UnaryOp) -> FailureCase {
    match how {
        UnaryOp::Neg | UnaryOp::Abs => FailureCase::Values,
        _ => FailureCase::Never,
    }
}

/// Returns the properties of a unary list function that planner rules use. `ragged_ceil` replaces
/// the scalar function `ceil` in calls on lists, and also those named in `instead_of`, such as
/// `ceiling`.
const fn find_unary_facts(how: UnaryOp) -> FunctionFacts {
    let instead_of: &[&str] = match how {
        UnaryOp::Ceil => &["ceiling"],
        UnaryOp::IsNan => &["isnan"],
        UnaryOp::Log10 => &["log"],
        UnaryOp::Sign => &["signum"],
        _ => &[],
    };
    FunctionFacts { instead_of, ..FunctionFacts::NONE }
}

macro_rules! math {
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        math!($id, $how, $name, $description, $missing, $duckdb, X);
    };
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal, $x:expr) => {
        #[doc = concat!("`", $name, "(x)`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 1),
            doc: Doc {
                section: FunctionSection::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(x)")],
                args: &[$x],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| plan_unary(plan, $how),
            call: |call| call.to_lists(&compute_unary(&call.read_ragged(0)?, $how)?),
            fails: find_unary_fails($how),
            facts: find_unary_facts($how),
            ..Def::DEFAULTS
        };
    };
}

math!(
    ABS,
    UnaryOp::Abs,
    "ragged_abs",
    "Returns the absolute value of each value, in its type.",
    "NULL values stay NULL, and NaN stays NaN. The smallest integer of a type has no absolute value, which is an error.",
    "`list_transform(x, lambda v: abs(v))`."
);
math!(
    SIGN,
    UnaryOp::Sign,
    "ragged_sign",
    "Returns the sign of each value, -1, 0 or 1, in its type.",
    "NULL values stay NULL, and NaN stays NaN.",
    "`list_transform(x, lambda v: sign(v))`."
);
math!(
    CEIL,
    UnaryOp::Ceil,
    "ragged_ceil",
    "Returns each value rounded up to an integer, in its type.",
    "NULL values stay NULL, and NaN stays NaN. Integers are unchanged.",
    "`list_transform(x, lambda v: ceil(v))`."
);
math!(
    FLOOR,
    UnaryOp::Floor,
    "ragged_floor",
    "Returns each value rounded down to an integer, in its type.",
    "NULL values stay NULL, and NaN stays NaN. Integers are unchanged.",
    "`list_transform(x, lambda v: floor(v))`."
);
math!(
    SQRT,
    UnaryOp::Sqrt,
    "ragged_sqrt",
    "Returns the square root of each value: floats in their type, integers as `Float64`.",
    "NULL values stay NULL. The square root of a negative number is NaN.",
    "`list_transform(x, lambda v: sqrt(v))`."
);
math!(
    EXP,
    UnaryOp::Exp,
    "ragged_exp",
    "Returns e to the power of each value: floats in their type, integers as `Float64`.",
    "NULL values stay NULL, and NaN stays NaN. A result that is too large is infinite.",
    "`list_transform(x, lambda v: exp(v))`."
);
math!(
    LN,
    UnaryOp::Ln,
    "ragged_ln",
    "Returns the natural logarithm of each value: floats in their type, integers as `Float64`.",
    "NULL values stay NULL. The logarithm of 0 is negative infinity, and that of a negative number is NaN.",
    "`list_transform(x, lambda v: ln(v))`."
);
math!(
    LOG2,
    UnaryOp::Log2,
    "ragged_log2",
    "Returns the logarithm to base 2 of each value: floats in their type, integers as `Float64`.",
    "NULL values stay NULL. The logarithm of 0 is negative infinity, and that of a negative number is NaN.",
    "`list_transform(x, lambda v: log2(v))`."
);
math!(
    LOG10,
    UnaryOp::Log10,
    "ragged_log10",
    "Returns the logarithm to base 10 of each value: floats in their type, integers as `Float64`.",
    "NULL values stay NULL. The logarithm of 0 is negative infinity, and that of a negative number is NaN.",
    "`list_transform(x, lambda v: log10(v))`."
);
math!(
    IS_NULL,
    UnaryOp::IsNull,
    "ragged_is_null",
    "Returns a mask of the values that are NULL. (`x IS NULL` tests the list as a whole.)",
    "The mask contains no NULL values; NULL lists stay NULL. NaN is not NULL (`ragged_is_nan`).",
    "`list_transform(x, lambda v: v IS NULL)`.",
    ("x", "a list of any depth, of values of any type")
);
math!(
    IS_NAN,
    UnaryOp::IsNan,
    "ragged_is_nan",
    "Returns a mask of the values that are NaN.",
    "NULL values stay NULL. Integers are never NaN.",
    "`list_transform(x, lambda v: isnan(v))`."
);

pub(super) static ROUND: Def = Def {
    name: "ragged_round",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Elementwise,
        description: "Returns each value rounded to a number of decimal places, in its type. A value halfway between two results is rounded to the even one, as in numpy: 2.5 becomes 2.",
        syntax: &["ragged_round(x [, digits])"],
        args: &[
            X,
            (
                "digits",
                "the number of decimal places, a literal; 0 by default. A negative number rounds to tens, hundreds, ..",
            ),
        ],
        missing: "NULL values stay NULL, and NaN stays NaN.",
        duckdb: "`list_transform(x, lambda v: round_even(v, digits))`.",
        example: example!("ragged_round"),
    },
    plan: |plan| {
        let digits = plan.find_literal_integer(1, "digits", "2")?.unwrap_or_default();
        let digits = i32::try_from(digits).map_err(|_| {
            plan.refuse_call(format!(
                "argument 2 (digits) must be an integer from -2147483648 to 2147483647, such as 2; it is {digits}"
            ))
        })?;
        plan_unary(plan, UnaryOp::Round(digits))
    },
    call: |call| {
        let digits = call.read_integer(1).and_then(|n| i32::try_from(n).ok()).unwrap_or_default();
        call.to_lists(&compute_unary(&call.read_ragged(0)?, UnaryOp::Round(digits))?)
    },
    ..Def::DEFAULTS
};

fn plan_unary(plan: &CallPlan<'_>, how: UnaryOp) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    let leaf = lists.leaf();
    let out = match leaf {
        DataType::Null if how != UnaryOp::IsNull => how.output_type(&DataType::Float64),
        DataType::Dictionary(_, values) => how.output_type(values),
        leaf => how.output_type(leaf),
    };
    let out = out.map_err(|_| plan.make_values_error("numbers", leaf))?;
    Ok(make_nullable(lists.make_plain_leaf(out)))
}

/// Applies a unary function to the leaves. Casts Null leaves to floats, and dictionaries to their
/// value type.
fn compute_unary(x: &RaggedArray, how: UnaryOp) -> Result<RaggedArray> {
    if how == UnaryOp::IsNull {
        return unary::unary(how, x);
    }
    let to = match x.leaf_type() {
        DataType::Null => DataType::Float64,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        _ => return unary::unary(how, x),
    };
    unary::unary(how, &x.with_leaves(cast(x.leaves(), &to)?)?)
}
