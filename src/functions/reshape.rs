//! Merging levels of lists.

use std::sync::Arc;

use super::def::{Def, nullable};
use super::doc::{Doc, Section};
use super::example;
use crate::error::Error;
use crate::kernels::reshape;

/// `ragged_flatten(x [, axis])`.
pub(super) static FLATTEN: Def = Def {
    name: "ragged_flatten",
    aliases: &[],
    arity: (1, 2),
    doc: Doc {
        section: Section::Shape,
        description: "All values of a row in one list; with an axis, only the lists of that axis are joined, into those of the axis before.",
        syntax: &["ragged_flatten(x [, axis])"],
        args: &[
            ("x", "a list of any depth: List, LargeList or FixedSizeList"),
            (
                "axis",
                "the axis that goes, written out: 2 or more, or negative from the innermost; axis 1 would join rows, which `unnest` does",
            ),
        ],
        missing: "NULL and empty lists inside a row contribute nothing, NULL values are kept, a NULL row stays NULL.",
        duckdb: "`flatten(x)` takes away one level.",
        example: example!("ragged_flatten"),
    },
    plan: |plan| {
        let lists = plan.lists(0)?;
        let out = match plan.axis(1, &lists, "array_agg and unnest do")? {
            None => lists.flat(),
            Some(1) => {
                return Err(Error::invalid(format!(
                    "{}: axis 1 is the outermost list of a row, joining those joins rows: use unnest(x)",
                    plan.name()
                )));
            }
            Some(axis) => lists.without(axis - 1, lists.leaf().clone()),
        };
        let metadata = plan.field(0).metadata().clone();
        Ok(Arc::new(nullable(out).as_ref().clone().with_metadata(metadata)))
    },
    call: |call| {
        let x = call.ragged(0)?;
        call.lists(&match call.integer(1) {
            None => reshape::flatten_all(&x)?,
            Some(axis) => reshape::flatten(&x, axis)?,
        })
    },
    infix: None,
};
