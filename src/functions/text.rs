//! Tests of strings and of membership on leaves (innermost values): the functions that LIKE, `~`
//! and IN on lists call.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use crate::array::{ListKind, RaggedArray, list_kind};
use crate::error::Result;
use crate::kernels::isin;
use crate::kernels::text::{self, TextTest, is_text};

const TEXTS: (&str, &str) = (
    "x",
    "a list of any depth of strings; each value of a dictionary, as codes are, is tested once",
);
const MISSING: &str = "NULL values stay NULL, and lists keep their lengths. If the second argument is NULL, all values are NULL.";

macro_rules! text_test {
    ($id:ident, $name:literal, $infix:expr, $planned_for:expr, $test:expr, $description:literal, $syntax:expr, $arg:expr, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x, text)`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (2, 2),
            doc: Doc {
                section: FunctionSection::Codes,
                description: $description,
                syntax: $syntax,
                args: &[TEXTS, $arg],
                missing: MISSING,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: |plan| plan_test(plan, |text, _| $test(text)),
            call: |call| compute_test(call, |text, _| $test(text)),
            fails: FailureCase::UnequalLengths,
            infix: $infix,
            facts: FunctionFacts { planned_for: $planned_for, ..FunctionFacts::NONE },
            ..Def::DEFAULTS
        };
    };
}

text_test!(
    LIKE,
    "ragged_like",
    Some("LIKE"),
    None,
    TextTest::Like,
    "Returns a mask of the strings that match a LIKE pattern. `%` matches any string, `_` any character, and a backslash makes either literal. `NOT LIKE` is `ragged_not` of the mask.",
    &["ragged_like(x, pattern)", "x LIKE pattern", "x NOT LIKE pattern"],
    ("pattern", "a string, for all rows or one per row"),
    "`list_transform(x, lambda v: v LIKE pattern)`."
);
text_test!(
    ILIKE,
    "ragged_ilike",
    Some("ILIKE"),
    None,
    TextTest::ILike,
    "Returns a mask of the strings that match a LIKE pattern, ignoring case. The patterns are those of `ragged_like`.",
    &["ragged_ilike(x, pattern)", "x ILIKE pattern", "x NOT ILIKE pattern"],
    ("pattern", "a string, for all rows or one per row"),
    "`list_transform(x, lambda v: v ILIKE pattern)`."
);
text_test!(
    STARTS_WITH,
    "ragged_starts_with",
    None,
    Some("starts_with"),
    TextTest::StartsWith,
    "Returns a mask of the strings that start with a prefix. No character of the prefix has a special meaning.",
    &["ragged_starts_with(x, prefix)", "starts_with(x, prefix)"],
    ("prefix", "a string, for all rows or one per row"),
    "`list_transform(x, lambda v: starts_with(v, prefix))`."
);

pub(super) static MATCHES: Def = Def {
    name: "ragged_matches",
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns a mask of the strings in which a regular expression has a match, at any position unless the expression is anchored (`^`, `$`). `~*` sets the flag `i`; `!~` and `!~*` are `ragged_not` of the mask.",
        syntax: &[
            "ragged_matches(x, regex [, flags])",
            "x ~ regex",
            "x ~* regex",
            "x !~ regex",
            "regexp_like(x, regex [, flags])",
        ],
        args: &[
            TEXTS,
            (
                "regex",
                "a regular expression in the syntax of Rust's regex crate, for all rows or one per row",
            ),
            (
                "flags",
                "letters, a literal: `i` ignores case, `s` lets `.` match line ends, `x` ignores spaces in the expression",
            ),
        ],
        missing: MISSING,
        duckdb: "`list_transform(x, lambda v: regexp_matches(v, regex))`.",
        example: example!("ragged_matches"),
    },
    plan: |plan| plan_test(plan, |pattern, flags| TextTest::Matches { pattern, flags }),
    call: |call| compute_test(call, |pattern, flags| TextTest::Matches { pattern, flags }),
    fails: FailureCase::ComputedArguments,
    infix: Some("~"),
    facts: FunctionFacts { planned_for: Some("regexp_like"), ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

fn plan_test(
    plan: &CallPlan<'_>,
    of: impl for<'a> Fn(&'a str, Option<&'a str>) -> TextTest<'a>,
) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    let leaf = lists.leaf();
    if !is_text(leaf) && !leaf.is_null() {
        return Err(plan.refuse_call(format!(
            "argument 1 must be a list of strings; its values are {leaf}, so cast them first"
        )));
    }
    let given = plan.data_type(1);
    if !is_text(given) && !given.is_null() {
        return Err(plan
            .refuse_call(format!("argument 2 must be a string; it is {given}, so cast it first")));
    }
    let flags = match plan.len() {
        3 => plan.find_literal_text(2, "the flags", "'i'").or_else(|e| {
            match plan.find_known_literal(2) {
                Some(v) if v.is_null() => Ok(None),
                _ => Err(e),
            }
        })?,
        _ => None,
    };
    if let Some(text) = plan.find_known_literal(1).and_then(|v| v.try_as_str()).flatten() {
        of(text, flags)
            .check()
            .map_err(|e| plan.refuse_call(format!("argument 2 is not a valid pattern: {e}")))?;
    }
    Ok(make_nullable(lists.make_plain_leaf(DataType::Boolean)))
}

fn compute_test(
    call: &BatchCall<'_>,
    of: impl for<'a> Fn(&'a str, Option<&'a str>) -> TextTest<'a>,
) -> Result<ArrayRef> {
    let x = call.read_ragged(0)?;
    let flags = call.read_text(2);
    let answers = |x: &RaggedArray, given: &ArrayRef| -> Result<ArrayRef> {
        let given = cast(given, &DataType::Utf8)?;
        let given = given.as_string::<i32>();
        match given.iter().next().flatten() {
            Some(given) => Ok(Arc::clone(text::test(x, of(given, flags))?.leaves())),
            None => Ok(make_nulls(x)),
        }
    };
    call.to_lists(&compute_by_run(call, &x, answers)?)
}

fn make_nulls(x: &RaggedArray) -> ArrayRef {
    Arc::new(BooleanArray::new_null(x.leaves().len()))
}

/// Replaces the leaves of `x` with the results of `answers`, which receives rows of `x` and the
/// value of the second argument for these rows. Calls `answers` once if the second argument is
/// constant, otherwise once for each run of consecutive rows with equal values.
fn compute_by_run(
    call: &BatchCall<'_>,
    x: &RaggedArray,
    answers: impl Fn(&RaggedArray, &ArrayRef) -> Result<ArrayRef>,
) -> Result<RaggedArray> {
    if let Some(value) = call.find_constant(1) {
        return x.with_leaves(answers(x, &value.to_array_of_size(1)?)?);
    }
    let given = call.read_array(1)?;
    let mut parts = Vec::new();
    let mut start = 0;
    for row in 1..=given.len() {
        if row < given.len() && given.slice(row, 1) == given.slice(start, 1) {
            continue;
        }
        parts.push(answers(&x.slice(start, row - start)?, &given.slice(start, 1))?);
        start = row;
    }
    if parts.is_empty() {
        return x.with_leaves(make_nulls(x));
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    x.with_leaves(concat(&parts)?)
}

pub(super) static ISIN: Def = Def {
    name: "ragged_isin",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns a mask of the values that are in a list. `NOT IN` is `ragged_not` of the mask. If the list of IN contains columns, the values are compared with each of its elements in turn.",
        syntax: &["ragged_isin(x, values)", "x IN (value, ..)", "x NOT IN (value, ..)"],
        args: &[
            (
                "x",
                "a list of any depth and type; each value of a dictionary, as codes are, is looked up once",
            ),
            (
                "values",
                "a list of one level, for all rows or one per row: `['a', 'b']`, `descendants('ICD10CM/E11', 'DIR')`, `(SELECT array_agg(code) FROM t)`",
            ),
        ],
        missing: "The rules are those of IN. NULL values stay NULL. If `values` contains NULL, a value that is not found is NULL, and if `values` is NULL, all values are NULL. `values` is cast to the type of `x`: numbers that the type cannot represent (1.5 or 300 for `UInt8`) never match, and strings are parsed as numbers or times. Numbers compare as with `=`: float literals are rounded to the type of a `Float32` list, and the floats and decimals of a column compare with it as `Float64`. NaN matches NaN.",
        duckdb: "`list_transform(x, lambda v: list_contains(values, v))`.",
        example: example!("ragged_isin"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if !plan.is_untyped_null(1) {
            let given = plan.data_type(1);
            let values = plan.require_lists(1)?;
            if values.depth() != 1 {
                return Err(plan.refuse_call(format!(
                    "argument 2 (the values) must be a list of one level, such as ['a', 'b']; it is {given}"
                )));
            }
            isin::check_types(lists.leaf(), values.leaf()).map_err(|e| {
                plan.refuse_call(format!("argument 2 cannot be compared with argument 1: {e}"))
            })?;
        }
        Ok(make_nullable(lists.make_plain_leaf(DataType::Boolean)))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let is_literal = call.find_constant(1).is_some();
        let answers = |x: &RaggedArray, given: &ArrayRef| -> Result<ArrayRef> {
            let Some(mut values) = read_list_values(given)? else { return Ok(make_nulls(x)) };
            if is_literal {
                values = isin::round_literals(&values, x.leaf_type())?;
            }
            Ok(Arc::clone(isin::isin(x, &values)?.leaves()))
        };
        call.to_lists(&compute_by_run(call, &x, answers)?)
    },
    fails: FailureCase::Never,
    facts: FunctionFacts { compares_durations: true, ..FunctionFacts::COMPARES },
    ..Def::DEFAULTS
};

fn read_list_values(list: &ArrayRef) -> Result<Option<ArrayRef>> {
    if list.is_null(0) {
        return Ok(None);
    }
    Ok(match list_kind(list.data_type()) {
        Some((ListKind::List, _)) => Some(list.as_list::<i32>().value(0)),
        Some((ListKind::LargeList, _)) => Some(list.as_list::<i64>().value(0)),
        Some((ListKind::FixedSizeList(_), _)) => Some(list.as_fixed_size_list().value(0)),
        None => None,
    })
}
