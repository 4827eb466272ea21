//! `ragged_concat_agg`: concatenates the lists of many rows.

use arrow::datatypes::DataType;

use super::super::doc::{Doc, FunctionSection};
use super::super::example;
use super::nest_aggregate::{self, NestAggregate};
use super::{AggDef, AggFacts};

pub(super) static CONCAT: AggDef = AggDef {
    name: "ragged_concat_agg",
    arity: (1, 1),
    doc: Doc {
        section: FunctionSection::Aggregate,
        description: "Concatenates the lists of a group: the elements of the first row, then those of the second, and so on. Levels are unchanged.",
        syntax: &["ragged_concat_agg(x)", "ragged_concat_agg(x ORDER BY t, ..)"],
        args: &[(
            "x",
            "a list of any depth; `ORDER BY` determines the order of the rows, which without it come in the order of the plan",
        )],
        missing: "NULL rows are skipped, and NULL elements are kept. A group of NULL rows only returns NULL, and one of empty rows an empty list.",
        duckdb: "`flatten(list(x ORDER BY t))`.",
        example: example!("ragged_concat_agg"),
    },
    ordered: true,
    keeps_values: true,
    facts: AggFacts::ANY_ROW,
    plan: |types| Ok(types.require_lists()?.map_or(DataType::Null, |lists| lists.open())),
    state: |types| Ok(nest_aggregate::list_state_types(types)),
    begin: |begin| Ok(Box::new(NestAggregate::new(begin, Some(begin.returns.clone())))),
};
