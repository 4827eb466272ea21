//! Functions that sort lists and rank their values.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection, X};
use super::example;
use super::index::{plan_retyped_field, plan_same_field};
use crate::error::Result;
use crate::kernels::sort::{self, SortOrder};

const ORDER: (&str, &str) = (
    "order",
    "`'asc'` (default) or `'desc'`, followed by `' nulls first'` if NULL shall come first, a literal",
);
const ORDER_OF_RANKS: (&str, &str) = (
    "order",
    "`'asc'` (default) or `'desc'`, a literal; `' nulls first'` after it has no effect, because NULL has no rank",
);

pub(super) static SORT: Def = Def {
    name: "ragged_sort",
    arity: (1, 3),
    doc: Doc {
        section: FunctionSection::Running,
        description: "Sorts each innermost list. With `by`, it sorts the elements by the values of a sibling list: `ragged_sort(code, time)` returns the codes in order of time. The sort is stable.",
        syntax: &["ragged_sort(x [, order])", "ragged_sort(x, by [, order])"],
        args: &[
            X,
            (
                "by",
                "a list with the lengths of `x` on its own levels; if `x` is deeper, whole elements of an outer axis are sorted",
            ),
            ORDER,
        ],
        missing: "NULL values come last, after NaN, or first with `' nulls first'`. A NULL list stays NULL.",
        duckdb: "`list_sort(x)`; with `by` `list_select(x, list_grade_up(by))`.",
        example: example!("ragged_sort"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let (by, order) = locate_arguments(plan.len(), |i| plan.data_type(i).is_string());
        check_order(plan, order)?;
        let Some(by) = by else {
            check_comparable(plan, 0, lists.leaf())?;
            return plan_same_field(plan);
        };
        let keys = plan.require_lists(by)?;
        check_comparable(plan, by, keys.leaf())?;
        if keys.depth() > lists.depth() {
            return Err(plan.refuse_call(format!(
                "argument {} (by) has {} levels of lists, but argument 1 has only {}; give sort keys with at most as many levels as argument 1",
                by + 1,
                keys.depth(),
                lists.depth()
            )));
        }
        plan_same_field(plan)
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let (by, order) = locate_arguments(call.len(), |i| call.find_array_type(i).is_string());
        let order = parse_order(order.and_then(|i| call.read_text(i))).unwrap_or_default();
        call.to_lists(&match by {
            None => sort::sort(&x, order)?,
            Some(by) => sort::sort_by(&x, &call.read_ragged(by)?, order)?,
        })
    },
    facts: FunctionFacts::COMPARES,
    ..Def::DEFAULTS
};

fn locate_arguments(
    arguments: usize,
    text: impl Fn(usize) -> bool,
) -> (Option<usize>, Option<usize>) {
    match arguments {
        0 | 1 => (None, None),
        2 if text(1) => (None, Some(1)),
        2 => (Some(1), None),
        _ => (Some(1), Some(2)),
    }
}

/// Parses a sort order. Without a text, the order is ascending. Returns `None` if the text is
/// invalid.
fn parse_order(text: Option<&str>) -> Option<SortOrder> {
    let Some(text) = text else { return Some(SortOrder::default()) };
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (first, rest) = words.split_first()?;
    let descending = match *first {
        "asc" => false,
        "desc" => true,
        _ => return None,
    };
    let nulls_first = match rest {
        [] | ["nulls", "last"] => false,
        ["nulls", "first"] => true,
        _ => return None,
    };
    Some(SortOrder { descending, nulls_first })
}

fn check_order(plan: &CallPlan<'_>, at: Option<usize>) -> Result<()> {
    let Some(i) = at else { return Ok(()) };
    let text = plan.find_literal_text(i, "the order", "'desc'")?;
    match parse_order(text) {
        Some(_) => Ok(()),
        None => Err(plan.refuse_call(format!(
            "argument {} (the order) must be 'asc' or 'desc', optionally followed by 'nulls first'; it is {:?}",
            i + 1,
            text.unwrap_or_default()
        ))),
    }
}

fn check_comparable(plan: &CallPlan<'_>, i: usize, leaf: &DataType) -> Result<()> {
    match leaf.is_nested() {
        true => Err(plan.refuse_call(format!(
            "argument {} must hold values with an order, such as numbers, strings or times; its values are {leaf}; for structs, give one field: ragged_unzip(x, 'name')",
            i + 1
        ))),
        false => Ok(()),
    }
}

macro_rules! positions {
    ($id:ident, $kernel:path, $name:literal, $order:ident, $description:literal, $missing:literal, $duckdb:literal) => {
        #[doc = concat!("`", $name, "(x [, order])`.")]
        pub(super) static $id: Def = Def {
            name: $name,
            arity: (1, 2),
            doc: Doc {
                section: FunctionSection::Running,
                description: $description,
                syntax: &[concat!($name, "(x [, order])")],
                args: &[X, $order],
                missing: $missing,
                duckdb: $duckdb,
                example: example!($name),
            },
            plan: plan_positions,
            call: |call| {
                let order = parse_order(call.read_text(1)).unwrap_or_default();
                call.to_lists(&$kernel(&call.read_ragged(0)?, order)?)
            },
            facts: FunctionFacts::COMPARES,
            ..Def::DEFAULTS
        };
    };
}

positions!(
    ARGSORT,
    sort::argsort,
    "ragged_argsort",
    ORDER,
    "Returns the positions that sort each innermost list: the position of the first value in order, of the second, and so on, from 0. `ragged_take(x, ragged_argsort(x))` equals `ragged_sort(x)`.",
    "NULL values come last, after NaN, or first with `' nulls first'`. A NULL list stays NULL.",
    "`list_grade_up(x)`, with positions from 1."
);
positions!(
    RANK,
    sort::rank,
    "ragged_rank",
    ORDER_OF_RANKS,
    "Returns the rank of each value: its position in its sorted innermost list, from 0. Equal values are ranked in the order in which they stand.",
    "NULL values have no rank and stay NULL. A NULL list stays NULL.",
    "`list_grade_up(list_grade_up(x))`."
);

fn plan_positions(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let lists = plan.require_lists(0)?;
    check_comparable(plan, 0, lists.leaf())?;
    check_order(plan, (plan.len() > 1).then_some(1))?;
    Ok(make_nullable(lists.make_plain_leaf(DataType::Int64)))
}

pub(super) static UNIQUE: Def = Def {
    name: "ragged_unique",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Running,
        description: "Returns the different values of each innermost list in ascending order. (`ragged_nunique` returns their number.)",
        syntax: &["ragged_unique(x)"],
        args: &[X],
        missing: "NULL values are left out, and all NaN are one value. A NULL list stays NULL.",
        duckdb: "`list_sort(list_distinct(x))`.",
        example: example!("ragged_unique"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        check_comparable(plan, 0, lists.leaf())?;
        plan_retyped_field(plan, lists.open())
    },
    call: find_unique_values,
    facts: FunctionFacts::COMPARES,
    ..Def::DEFAULTS
};

fn find_unique_values(call: &BatchCall<'_>) -> Result<ArrayRef> {
    call.to_lists(&sort::unique(&call.read_ragged(0)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranks_ignore_the_place_of_null() {
        for (def, promise) in [
            (&SORT, "if NULL shall come first"),
            (&ARGSORT, "if NULL shall come first"),
            (&RANK, "has no effect"),
        ] {
            let (_, order) = def.doc.args.last().unwrap();
            assert!(order.contains(promise), "{}: {order}", def.name);
        }
    }

    #[test]
    fn orders_by_name() {
        assert_eq!(parse_order(None), Some(SortOrder::default()));
        assert_eq!(
            parse_order(Some("DESC")),
            Some(SortOrder { descending: true, nulls_first: false })
        );
        let first = SortOrder { descending: false, nulls_first: true };
        assert_eq!(parse_order(Some("asc  Nulls first")), Some(first));
        assert_eq!(parse_order(Some("up")), None);
        assert_eq!(parse_order(Some("")), None);
    }
}
