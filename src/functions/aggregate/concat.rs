//! `ragged_concat_agg`: the lists of many rows, one after the other.

use arrow::datatypes::DataType;

use super::super::doc::{Doc, Section};
use super::super::example;
use super::AggDef;
use super::nest::{self, Nest};

/// `ragged_concat_agg(x [ORDER BY ..])`.
pub(super) static CONCAT: AggDef = AggDef {
    name: "ragged_concat_agg",
    arity: (1, 1),
    doc: Doc {
        section: Section::Aggregate,
        description: "The lists of a group joined into one: the elements of the first row, then those of the second, and so on. Levels stay as they are.",
        syntax: &["ragged_concat_agg(x)", "ragged_concat_agg(x ORDER BY t, ..)"],
        args: &[(
            "x",
            "a list of any depth; `ORDER BY` says in which order the rows follow each other, without it they come as the plan delivers them",
        )],
        missing: "NULL rows are left out, NULL elements are kept. A group of NULL rows only gives NULL, one of empty rows an empty list.",
        duckdb: "`flatten(list(x ORDER BY t))`.",
        example: example!("ragged_concat_agg"),
    },
    ordered: true,
    keeps_values: true,
    plan: |types| Ok(types.lists()?.map_or(DataType::Null, |lists| lists.open())),
    state: |types| Ok(nest::state_types(types)),
    begin: |begin| Ok(Box::new(Nest::new(begin, Some(begin.returns.clone())))),
};
