//! Rewrites syntax that the planner does not support, in one walk over all expressions and queries
//! of a statement.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement, TableFactor,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use crate::sql::base::syntax::{as_flow, as_result};
use crate::sql::from::rewrite::rewrite_factor;
use crate::sql::statement::columns::lateral_tables::{
    join_after_comma, mark_query, name_outer_columns, select_queries_in_values, select_values,
};
use crate::sql::statement::columns::merged::select_merged;
use crate::sql::statement::columns::set_names::{
    add_identifiers, make_names_unique, name_repeated, name_right_columns,
};
use crate::sql::statement::columns::star_excludes::drop_own_tables;
use crate::sql::statement::columns::unnest_calls::as_unnest;
use crate::sql::statement::commands::row_structs::name_cast_rows;
use crate::sql::statement::errors::call_clauses::check_ordered_values;
use crate::sql::statement::expressions::escapes::use_backslash;
use crate::sql::statement::expressions::expr_rewrites::{
    call_lists, name_outer_elements, read_comparisons, rewrite_expr,
};
use crate::sql::statement::expressions::intervals::write_interval;
use crate::sql::statement::expressions::quantified::{
    find_in_lists, name_quantified, write_out_quantified,
};
use crate::sql::statement::expressions::tuples::rewrite_tuples;
use crate::sql::statement::expressions::windows::{
    move_order_to_window, name_ordered_window, write_out_windows,
};
use crate::sql::statement::functions::numbered_lambdas::write_out_positions;
use crate::sql::statement::functions::shorthands::{expand_shorthand, name_shorthands};
use crate::sql::statement::keys::constants::{repeat_casts, rewrite_constants, type_strings};
use crate::sql::statement::keys::grouping::{
    cast_grouped_integers, group_constants_together, write_out_sets,
};
use crate::sql::statement::keys::text_orders::sort_texts_apart;
use crate::sql::statement::keys::{distinct_on, order_all, repeated_keys};
use crate::sql::statement::names::cast_arguments::{distinguish_casts, distinguish_expansions};
use crate::sql::statement::names::order_aliases::order_by_columns;
use crate::sql::statement::names::outer_fields::access_outer_fields;
use crate::sql::statement::names::partial_names::{complete_names, complete_view_names};
use crate::sql::statement::names::select_names::normalize_names;
use crate::sql::statement::names::unnest_names::separate_names;
use crate::sql::statement::parsing::depth::balance_chains;
use crate::sql::statement::parsing::forms::{limit_to_fetched, rewrite_semi_joins};
use crate::sql::statement::parsing::query_texts::parse_query_text;
use crate::sql::statement::recursive_unions::keep_clauses;

/// Rewrites syntax that the parser or planner does not support.
#[derive(Default)]
struct SyntaxRewriter {
    /// Number of queries around the current position.
    queries: usize,
    /// Whether the next query is the source of an INSERT.
    is_source_of_insert: bool,
}

impl VisitorMut for SyntaxRewriter {
    type Break = DataFusionError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<DataFusionError> {
        self.is_source_of_insert =
            matches!(statement, Statement::Insert(insert) if insert.source.is_some());
        as_flow(complete_view_names(statement))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) && select.projection.is_empty()
        {
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::FromFirst;
        }
        if let Err(e) = normalize_names(select) {
            return ControlFlow::Break(e);
        }
        select.from.iter_mut().for_each(rewrite_semi_joins);
        join_after_comma(&mut select.from);
        drop_own_tables(select);
        cast_grouped_integers(select);
        if let Err(e) = write_out_sets(select) {
            return ControlFlow::Break(e);
        }
        if let Some(condition) = &mut select.selection {
            find_in_lists(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        group_constants_together(select);
        as_flow(separate_names(select))
    }

    fn pre_visit_table_factor(
        &mut self,
        relation: &mut TableFactor,
    ) -> ControlFlow<DataFusionError> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
            rewrite_semi_joins(table_with_joins);
        }
        if let Some(unnest) = as_unnest(relation) {
            *relation = unnest;
        }
        name_outer_elements(relation);
        name_outer_columns(relation);
        as_flow(
            select_merged(relation)
                .and_then(|()| rewrite_factor(relation, parse_query_text))
                .and_then(|()| select_values(relation)),
        )
    }

    fn post_visit_table_factor(
        &mut self,
        relation: &mut TableFactor,
    ) -> ControlFlow<DataFusionError> {
        as_flow(mark_query(relation))
    }

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<DataFusionError> {
        balance_chains(expr);
        repeated_keys::drop_in_call(expr);
        if let Err(e) = check_ordered_values(expr) {
            return ControlFlow::Break(e);
        }
        move_order_to_window(expr);
        write_out_quantified(expr);
        read_comparisons(expr);
        expand_shorthand(expr);
        write_interval(expr);
        use_backslash(expr);
        name_cast_rows(expr);
        call_lists(expr, self.queries > 1);
        as_flow(
            rewrite_tuples(expr)
                .and_then(|()| write_out_positions(expr))
                .and_then(|()| rewrite_expr(expr, parse_query_text)),
        )
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        // The strings in the VALUES of an INSERT keep their type, even next to a DATE: INSERT casts
        // each string to the type of its column in the table.
        if !std::mem::take(&mut self.is_source_of_insert) {
            type_strings(query);
        }
        self.queries = self.queries.saturating_add(1);
        order_all::number_columns(query);
        let checked = distinct_on::check_unnest(query);
        distinct_on::number_rows(query);
        as_flow(
            checked
                .and_then(|()| complete_names(query))
                .and_then(|()| keep_clauses(query))
                .and_then(|()| limit_to_fetched(query))
                .and_then(|()| select_queries_in_values(query))
                .and_then(|()| name_columns(query)),
        )
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        self.queries = self.queries.saturating_sub(1);
        repeated_keys::drop_in_query(query);
        if let Err(e) = write_out_windows(query) {
            return ControlFlow::Break(e);
        }
        distinguish_expansions(query);
        name_right_columns(&mut query.body);
        ControlFlow::Continue(())
    }
}

/// Gives result columns unique names: the text of their expressions in the statement.
fn name_columns(query: &mut Query) -> Result<()> {
    order_by_columns(query)?;
    let mut ordered = HashSet::new();
    add_identifiers(&query.order_by, &mut ordered);
    let mut bodies = vec![query.body.as_ref()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Query(inner) => {
                add_identifiers(&inner.order_by, &mut ordered);
                bodies.push(inner.body.as_ref());
            }
            SetExpr::SetOperation { left, right, .. } => bodies.extend([&**left, &**right]),
            _ => {}
        }
    }
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => {
                select.projection.iter_mut().for_each(name_quantified);
                select.projection.iter_mut().for_each(name_ordered_window);
                rewrite_constants(select)?;
                name_repeated(select, &ordered);
                sort_texts_apart(select);
            }
            SetExpr::Query(inner) => bodies.push(inner.body.as_mut()),
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_mut(), right.as_mut()]);
            }
            _ => {}
        }
    }
    name_shorthands(query);
    repeat_casts(query);
    if let Query { body, order_by, .. } = query
        && let SetExpr::Select(select) = body.as_mut()
    {
        distinguish_casts(select, order_by.as_mut());
    }
    let mut bodies = vec![query.body.as_mut()];
    while let Some(body) = bodies.pop() {
        make_names_unique(body, &ordered);
        if let SetExpr::SetOperation { left, right, .. } = body {
            for input in [left.as_mut(), right.as_mut()] {
                if let SetExpr::Select(select) = input {
                    distinguish_casts(select, None);
                }
                bodies.push(input);
            }
        }
    }
    Ok(())
}

pub(super) fn rewrite_statement<S: VisitMut + ?Sized>(statement: &mut S) -> Result<()> {
    rewrite_within(0, statement)
}

/// Rewrites syntax that the planner does not support, in a query that a relation planner receives.
pub(in crate::sql) fn rewrite_query(query: &mut Query) -> Result<()> {
    rewrite_within(1, query)
}

/// Rewrites a statement or a part of one, around which are `queries` queries.
fn rewrite_within<S: VisitMut + ?Sized>(queries: usize, part: &mut S) -> Result<()> {
    access_outer_fields(part);
    as_result(part.visit(&mut SyntaxRewriter { queries, ..SyntaxRewriter::default() }))
}
