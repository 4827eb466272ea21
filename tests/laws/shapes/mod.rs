//! Templates of queries whose names, rows or keys are easily confused. Each has equivalent forms
//! that avoid the confusion.
//!
//! In a template, `$p` and `$q` are relations with the columns `id`, `k`, `v`, `f`, `b` and `li`,
//! and `$t` is the table from which `$p` selects. `$i(y.)` and `$j(y.)` are expressions of integer
//! columns that `y.` qualifies, and `$c(y.)` and `$d(y.)` are such conditions. `$x` is a condition
//! with a subquery that is correlated with `y`; in this subquery, `$o` is the outer relation. `$e`
//! is a condition that is never true, `$h` is a kind of join, `$n` a number, and `$f` and `$g` are
//! window frames. `$s(y.)` is an interval and `$r(y.)` its rank, and `$w(y.)` is a 16-bit float.

mod captured_columns;
mod cast_sets;
mod correlated_names;
mod dates_and_numbers;
mod empty_branches;
mod empty_inputs;
mod equated_keys;
mod filtered_aggregates;
mod grouped_intervals;
mod grouped_lists;
mod groups_within_rows;
mod half_floats;
mod lateral_limits;
mod lateral_lists;
mod lazy_lambdas;
mod limited_scans;
mod list_views;
mod long_constants;
mod named_windows;
mod nested_joins;
mod outer_conditions;
mod outer_tests;
mod recursive_lists;
mod shared_queries;
mod sorted_unions;
mod stacked_windows;
mod struct_lists;
mod subquery_arguments;
mod top_rows;
mod unnamed_queries;
mod unsigned_lists;
mod widened_structs;
mod windows;

use super::{Col, Columns, Queries, query_role};
use crate::forms::{Node, Parts, Role};
use captured_columns::CAPTURED;
use cast_sets::CAST_SETS;
use correlated_names::CORRELATED;
use dates_and_numbers::DATES_AND_NUMBERS;
use empty_branches::BRANCHES;
use empty_inputs::EMPTY_INPUTS;
use equated_keys::EQUATED;
use filtered_aggregates::FILTERED;
use grouped_intervals::{GROUPED_INTERVALS, INTERVALS};
use grouped_lists::GROUPED_LISTS;
use groups_within_rows::GROUPS_WITHIN_ROWS;
use half_floats::{HALF_FLOATS, HALVES};
use lateral_limits::LATERAL_LIMITS;
use lateral_lists::LATERAL_LISTS;
use lazy_lambdas::LAZY_LAMBDAS;
use limited_scans::LIMITED_SCANS;
use list_views::LIST_VIEWS;
use long_constants::LONG_CONSTANTS;
use named_windows::NAMED_WINDOWS;
use nested_joins::NESTED_JOINS;
use outer_conditions::MERGED;
use outer_tests::OUTER_TESTS;
use recursive_lists::RECURSIVE_LISTS;
use shared_queries::SHARED;
use sorted_unions::SORTED_UNIONS;
use stacked_windows::STACKED;
use struct_lists::STRUCT_LISTS;
use subquery_arguments::SUBQUERY_ARGUMENTS;
use top_rows::TOPMOST;
use unnamed_queries::UNNAMED;
use unsigned_lists::UNSIGNED_LISTS;
use widened_structs::WIDENED_STRUCTS;
use windows::SHIFTED;

/// Equivalent forms of a template, each with the name of the law that makes it equivalent.
type Ways = &'static [(&'static str, &'static str)];

/// The types of the columns of a query, its template, and equivalent forms.
type Shape = (&'static [&'static str], &'static str, Ways);

const QUALIFIERS: [&str; 6] = ["", "u.", "w.", "x.", "y.", "z."];
const INTEGERS: &[&str] = &[
    "§k",
    "§v",
    "(§k + §v)",
    "abs(§v)",
    "coalesce(§v, §k)",
    "CASE WHEN §b THEN §k ELSE §v END",
    "(§k % 3)",
    "(-§v)",
];
const CONDITIONS: &[&str] = &[
    "true",
    "§k > 1",
    "§v IS NULL",
    "§b",
    "§k = §v",
    "(§b OR §v > 0)",
    "NOT §b",
    "coalesce(§v, 0) <= 1",
    "§k IN (1, 2)",
];
const NEVER: &[&str] = &["false", "1 = 0", "NULL", "2 < 1 AND true"];
const KINDS: &[&str] = &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
const NUMBERS: &[&str] = &["1", "2", "3"];
const FRAMES: &[&str] = &[
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
];

/// All templates, by subject.
pub(super) const SHAPES: [&[Shape]; 32] = [
    UNNAMED,
    MERGED,
    BRANCHES,
    FILTERED,
    CORRELATED,
    SHIFTED,
    CAPTURED,
    EQUATED,
    TOPMOST,
    SHARED,
    CAST_SETS,
    STACKED,
    GROUPED_INTERVALS,
    HALF_FLOATS,
    LIST_VIEWS,
    UNSIGNED_LISTS,
    LONG_CONSTANTS,
    LIMITED_SCANS,
    SUBQUERY_ARGUMENTS,
    LAZY_LAMBDAS,
    WIDENED_STRUCTS,
    NESTED_JOINS,
    SORTED_UNIONS,
    LATERAL_LIMITS,
    LATERAL_LISTS,
    DATES_AND_NUMBERS,
    EMPTY_INPUTS,
    GROUPED_LISTS,
    NAMED_WINDOWS,
    RECURSIVE_LISTS,
    STRUCT_LISTS,
    GROUPS_WITHIN_ROWS,
];

impl Queries {
    /// Returns a query from a template of the given subject in [`SHAPES`].
    pub(super) fn make_shape(&mut self, subject: usize) -> (Node, Columns) {
        let (types, first, ways) = self.pick(SHAPES[subject]);
        let columns: Columns =
            types.iter().enumerate().map(|(i, ty)| (format!("c{i}"), *ty)).collect();
        let node = self.make_spellings(query_role(&columns), first, ways, "y");
        (node, columns)
    }

    /// Returns a condition with a subquery that is correlated with the relation named `outer`,
    /// which must have the columns of a table.
    pub(super) fn make_outer_test(&mut self, outer: &str) -> Node {
        let (first, ways) = self.pick(OUTER_TESTS);
        self.make_spellings(Role::Value("b"), first, ways, outer)
    }

    /// Fills the placeholders of a template and of its equivalent forms with the same random parts.
    fn make_spellings(&mut self, role: Role, first: &str, ways: Ways, outer: &str) -> Node {
        let used =
            |name: &str| first.contains(name) || ways.iter().any(|(_, text)| text.contains(name));
        let mut p = Parts::default();
        let (left, table) = self.make_side();
        let (right, _) = self.make_side();
        let mut drawn = vec![("$t".to_string(), table), ("$o".to_string(), outer.to_string())];
        for (name, side) in [("$p", left), ("$q", right)] {
            if used(name) {
                drawn.push((name.to_string(), p.put(side)));
            }
        }
        if used("$x") {
            let test = self.make_outer_test(outer);
            drawn.push(("$x".to_string(), p.put(test)));
        }
        let mut qualified: Vec<(&str, &str)> =
            [("$i", INTEGERS), ("$j", INTEGERS), ("$c", CONDITIONS), ("$d", CONDITIONS)]
                .map(|(name, of)| (name, self.pick(of)))
                .to_vec();
        if used("$s(") {
            let (interval, rank) = self.pick(INTERVALS);
            qualified.extend([("$s", interval), ("$r", rank)]);
        }
        if used("$w(") {
            qualified.push(("$w", self.pick(HALVES)));
        }
        for (name, text) in qualified {
            drawn.extend(QUALIFIERS.map(|q| (format!("{name}({q})"), text.replace('§', q))));
        }
        for (name, of) in
            [("$e", NEVER), ("$h", KINDS), ("$n", NUMBERS), ("$f", FRAMES), ("$g", FRAMES)]
        {
            drawn.push((name.to_string(), self.pick(of).to_string()));
        }
        let fill = |text: &str| {
            drawn.iter().fold(text.to_string(), |out, (name, part)| out.replace(name, part))
        };
        let mut node = p.node(role, fill(first));
        for &(law, text) in ways {
            node = node.or(law, fill(text));
        }
        node
    }

    /// Returns a relation for `$p` or `$q`, which is a table or a query of a table, and the name of
    /// the table.
    fn make_side(&mut self) -> (Node, String) {
        let at = self.below(self.tables.len());
        let (table, columns) = self.tables[at].clone();
        if self.chance(40) {
            return (Node::text(Role::Fixed, table.clone()), table);
        }
        let r = self.name("r");
        let scope: Vec<Col> =
            columns.into_iter().map(|(n, ty)| Col { text: format!("{r}.{n}"), ty }).collect();
        let mut p = Parts::default();
        let [k, v] = ["i", "i"].map(|ty| p.put(self.value(ty, &scope, 1)));
        let w = p.put(self.condition(&scope, false));
        let text = format!(
            "(SELECT {r}.id, {k} AS k, {v} AS v, {r}.f, {r}.b, {r}.li \
             FROM {table} AS {r} WHERE {w})"
        );
        (p.node(Role::Fixed, text), table)
    }
}
