//! Functions of one value, leaf by leaf.

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};

use super::args::Plan;
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::unary::{self, Unary};

const X: (&str, &str) = ("x", "a list of any depth of numbers");

/// The smallest integer of a type has no negative.
const fn unary_fails(how: Unary) -> Fails {
    match how {
        Unary::Neg | Unary::Abs => Fails::Values,
        _ => Fails::Never,
    }
}

macro_rules! math {
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal) => {
        math!($id, $how, $name, $description, $missing, $duckdb, X);
    };
    ($id:ident, $how:expr, $name:literal, $description:literal, $missing:literal, $duckdb:literal, $x:expr) => {
        #[doc = concat!("`", $name, "(x)`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            aliases: &[],
            arity: (1, 1),
            doc: Doc {
                section: Section::Elementwise,
                description: $description,
                syntax: &[concat!($name, "(x)")],
                args: &[$x],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| planned(plan, $how),
            call: |call| call.lists(&computed(&call.ragged(0)?, $how)?),
            fails: unary_fails($how),
            infix: None,
        };
    };
}

math!(
    ABS,
    Unary::Abs,
    "ragged_abs",
    "The absolute value of every value, in its type.",
    "NULL stays NULL, NaN NaN. The smallest integer of a type has no absolute value, which is an error.",
    "`list_transform(x, lambda v: abs(v))`."
);
math!(
    SIGN,
    Unary::Sign,
    "ragged_sign",
    "-1, 0 or 1 for every value, in its type.",
    "NULL stays NULL, NaN NaN.",
    "`list_transform(x, lambda v: sign(v))`."
);
math!(
    CEIL,
    Unary::Ceil,
    "ragged_ceil",
    "The smallest whole number that is not less, for every value.",
    "NULL stays NULL, NaN NaN. Integers stay as they are.",
    "`list_transform(x, lambda v: ceil(v))`."
);
math!(
    FLOOR,
    Unary::Floor,
    "ragged_floor",
    "The largest whole number that is not greater, for every value.",
    "NULL stays NULL, NaN NaN. Integers stay as they are.",
    "`list_transform(x, lambda v: floor(v))`."
);
math!(
    SQRT,
    Unary::Sqrt,
    "ragged_sqrt",
    "The square root of every value: floats in their type, integers as `Float64`.",
    "NULL stays NULL; the root of a negative number is NaN.",
    "`list_transform(x, lambda v: sqrt(v))`."
);
math!(
    EXP,
    Unary::Exp,
    "ragged_exp",
    "e to the power of every value: floats in their type, integers as `Float64`.",
    "NULL stays NULL, NaN NaN; what is too large is infinite.",
    "`list_transform(x, lambda v: exp(v))`."
);
math!(
    LN,
    Unary::Ln,
    "ragged_ln",
    "The natural logarithm of every value: floats in their type, integers as `Float64`.",
    "NULL stays NULL; the logarithm of 0 is negative infinity, that of a negative number NaN.",
    "`list_transform(x, lambda v: ln(v))`."
);
math!(
    LOG2,
    Unary::Log2,
    "ragged_log2",
    "The logarithm to base 2 of every value: floats in their type, integers as `Float64`.",
    "NULL stays NULL; the logarithm of 0 is negative infinity, that of a negative number NaN.",
    "`list_transform(x, lambda v: log2(v))`."
);
math!(
    LOG10,
    Unary::Log10,
    "ragged_log10",
    "The logarithm to base 10 of every value: floats in their type, integers as `Float64`.",
    "NULL stays NULL; the logarithm of 0 is negative infinity, that of a negative number NaN.",
    "`list_transform(x, lambda v: log10(v))`."
);
math!(
    IS_NULL,
    Unary::IsNull,
    "ragged_is_null",
    "Whether each value is NULL: a mask. `x IS NULL` asks it of the list as a whole.",
    "No value of the mask is NULL; NULL lists stay NULL. NaN is not NULL (`ragged_is_nan`).",
    "`list_transform(x, lambda v: v IS NULL)`.",
    ("x", "a list of any depth, of values of any type")
);
math!(
    IS_NAN,
    Unary::IsNan,
    "ragged_is_nan",
    "Whether each value is NaN, not a number: a mask.",
    "NULL stays NULL. Integers are never NaN.",
    "`list_transform(x, lambda v: isnan(v))`."
);

/// `ragged_round(x [, digits])`.
pub(super) static ROUND: Def = Def {
    name: "ragged_round",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Elementwise,
        description: "Every value rounded to so many decimals, in its type. Halves go to the even neighbour, as in numpy: 2.5 becomes 2.",
        syntax: &["ragged_round(x [, digits])"],
        args: &[
            X,
            (
                "digits",
                "decimals, written out, 0 if not given; a negative number rounds tens, hundreds, ..",
            ),
        ],
        missing: "NULL stays NULL, NaN NaN.",
        duckdb: "`list_transform(x, lambda v: round_even(v, digits))`.",
        example: example!("ragged_round"),
    },
    plan: |plan| {
        let digits = plan.literal_integer(1, "digits", "2")?.unwrap_or_default();
        let digits = i32::try_from(digits).map_err(|_| {
            plan.refuse(1, format!("(digits) must be a small number such as 2; it is {digits}"))
        })?;
        planned(plan, Unary::Round(digits))
    },
    call: |call| {
        let digits = call.integer(1).and_then(|n| i32::try_from(n).ok()).unwrap_or_default();
        call.lists(&computed(&call.ragged(0)?, Unary::Round(digits))?)
    },
    fails: Fails::Values,
    infix: None,
};

fn planned(plan: &Plan<'_>, how: Unary) -> Result<FieldRef> {
    let lists = plan.lists(0)?;
    let leaf = lists.leaf();
    let out = match leaf {
        DataType::Null if how != Unary::IsNull => how.output_type(&DataType::Float64),
        DataType::Dictionary(_, values) => how.output_type(values),
        leaf => how.output_type(leaf),
    };
    let out = out.map_err(|_| plan.refuse_values("numbers", leaf))?;
    Ok(nullable(lists.plain_leaf(out)))
}

/// Leaves without a type count as floats, dictionaries as their values.
fn computed(x: &RaggedArray, how: Unary) -> Result<RaggedArray> {
    if how == Unary::IsNull {
        return unary::unary(how, x);
    }
    let to = match x.leaf_type() {
        DataType::Null => DataType::Float64,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        _ => return unary::unary(how, x),
    };
    unary::unary(how, &x.with_leaves(cast(x.leaves(), &to)?)?)
}
