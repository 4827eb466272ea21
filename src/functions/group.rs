//! Groups the elements within a list by keys.

use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{DataType, FieldRef};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FailureCase, FunctionFacts};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::index::{plan_retyped_field, plan_same_field};
use super::mixed_times::refuse_numbers_as_times;
use crate::array::RaggedArray;
use crate::error::Result;
use crate::kernels::group;

pub(super) static KEYS: Def = Def {
    name: "ragged_group_keys",
    aliases: &[],
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Returns the keys of `ragged_group`: the different values of each innermost list in ascending order, NULL last. (`ragged_unique` leaves NULL out.)",
        syntax: &["ragged_group_keys(keys)"],
        args: &[(
            "keys",
            "a list of any depth; structs, as `ragged_zip` makes them, group by several lists",
        )],
        missing: "NULL is a key of its own, the last one, as in GROUP BY. All NaN are one key, and 0.0 equals -0.0. A NULL list stays NULL.",
        duckdb: "`list_sort(list_distinct(keys))`, without NULL.",
        example: example!("ragged_group_keys"),
    },
    plan: |plan| {
        check_keys(plan, 0, plan.require_lists(0)?.leaf())?;
        plan_same_field(plan)
    },
    call: |call| call.to_lists(&group::group_keys(&call.read_ragged(0)?)?),
    facts: FunctionFacts::COMPARES,
    fails: FailureCase::Values,
    infix: None,
};

pub(super) static GROUP: Def = Def {
    name: "ragged_group",
    aliases: &[],
    arity: (2, 3),
    doc: Doc {
        section: FunctionSection::Within,
        description: "Groups the elements of a list by the values of a sibling list: one list per key, in the order of `ragged_group_keys(keys)`. A reduction with axis -1 aggregates the groups: `ragged_sum(ragged_group(x, keys), -1)` is GROUP BY within the row, and a sibling of `ragged_group_keys(keys)`. With `groups`, it returns one list for each of these keys instead, empty where no element has the key: a pivot to fixed columns, or months with gaps.",
        syntax: &["ragged_group(x, keys [, groups])"],
        args: &[
            ("x", "a list of any depth"),
            (
                "keys",
                "a list with the lengths of `x` on its own levels, such as `date_trunc('month', time)`; if `x` is deeper, whole elements of an outer axis are grouped. Structs, as `ragged_zip('a', a, 'b', b)` makes them, group by several lists",
            ),
            (
                "groups",
                "the keys that are wanted, in any order: a list for each list of keys, or one for all of a row. Elements with other keys are dropped. The literal NULL counts as not given",
            ),
        ],
        missing: "Elements of a group keep their order. NULL is a key of its own, the last one, as in GROUP BY. All NaN are one key, and 0.0 equals -0.0. An empty list has no groups, and a NULL list, of elements, of keys or of `groups`, is NULL. A row without times has NULL `groups` if `generate_series` computes them from `min(t)` and `max(t)`: write `coalesce(groups, [])` for an empty list.",
        duckdb: "`list_transform(list_sort(list_distinct(keys)), lambda k: list_where(x, list_transform(keys, lambda v: v = k)))`, without the group of NULL.",
        example: example!("ragged_group"),
    },
    plan: plan_group,
    call: group_lists,
    facts: FunctionFacts::COMPARES,
    fails: FailureCase::Values,
    infix: None,
};

fn check_keys(plan: &CallPlan<'_>, i: usize, leaf: &DataType) -> Result<()> {
    fn have_order(t: &DataType) -> bool {
        match t {
            DataType::Struct(fields) => fields.iter().all(|f| have_order(f.data_type())),
            DataType::Dictionary(_, values) => !values.is_nested(),
            DataType::RunEndEncoded(..) => false,
            t => !t.is_nested(),
        }
    }
    match have_order(leaf) {
        true => Ok(()),
        false => Err(plan.refuse_call(format!(
            "argument {} must hold values that can be compared, or structs of such values; its values are {leaf}, so cast them first",
            i + 1
        ))),
    }
}

fn plan_group(plan: &CallPlan<'_>) -> Result<FieldRef> {
    let (lists, keys) = (plan.require_lists(0)?, plan.require_lists(1)?);
    check_keys(plan, 1, keys.leaf())?;
    if keys.depth() > lists.depth() {
        return Err(plan.refuse_call(format!(
            "argument 2 (keys) has {} levels of lists, but argument 1 has only {}; give keys with at most as many levels as argument 1",
            keys.depth(),
            lists.depth()
        )));
    }
    if has_groups(plan.len(), |i| plan.data_type(i).clone()) {
        check_groups(plan, keys.leaf())?;
        let groups = plan.require_lists(2)?;
        if groups.depth() > keys.depth() {
            return Err(plan.refuse_call(format!(
                "argument 3 (groups) has {} levels of lists, but argument 2 (keys) has only {}; give groups with at most as many levels as the keys",
                groups.depth(),
                keys.depth()
            )));
        }
        if keys.leaf().is_nested() || groups.leaf().is_nested() {
            return Err(plan.refuse_call(format!(
                "argument 3 (groups) is not supported if keys or groups are structs; the keys are {} and the groups are {}, so leave out argument 3",
                keys.leaf(),
                groups.leaf()
            )));
        }
        let none = |i: usize| RaggedArray::try_from_arrow(&new_empty_array(plan.data_type(i)));
        let (key, wanted) = (keys.leaf(), groups.leaf());
        let text =
            (key.is_numeric() && wanted.is_string()) || (key.is_string() && wanted.is_numeric());
        if text || group::group_on(&none(0)?, &none(1)?, &none(2)?).is_err() {
            return Err(plan.refuse_call(format!(
                "argument 3 (groups) must hold values that compare with the keys, which are {key}; the groups are {wanted}, so cast them first"
            )));
        }
        refuse_numbers_as_times(plan, 2, wanted, key)?;
    }
    plan_retyped_field(plan, lists.repeat_level(keys.depth() - 1, 2))
}

/// Returns an error if argument 3 is a unit of time such as 'month', or a span of time, instead of
/// a list of groups.
fn check_groups(plan: &CallPlan<'_>, keys: &DataType) -> Result<()> {
    let bucket = match plan.data_type(2) {
        t if t.is_string() && keys.is_temporal() => "date_trunc('month', time)",
        DataType::Interval(_) | DataType::Duration(_) => "time_bucket(INTERVAL '7 days', time)",
        _ => return Ok(()),
    };
    Err(plan.refuse_call(format!(
        "argument 3 (groups) must be a list of keys, but is {}; to group by periods of time, compute the keys, as in ragged_group(x, {bucket})",
        plan.data_type(2)
    )))
}

/// Whether the argument `groups` is given. An untyped NULL counts as not given.
fn has_groups(arguments: usize, data_type: impl Fn(usize) -> DataType) -> bool {
    arguments > 2 && !data_type(2).is_null()
}

fn group_lists(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let (x, keys) = (call.read_ragged(0)?, call.read_ragged(1)?);
    call.to_lists(&match has_groups(call.len(), |i| call.find_array_type(i)) {
        true => group::group_on(&x, &keys, &call.read_ragged(2)?)?,
        false => group::group(&x, &keys)?,
    })
}
