//! Plans the table functions over queries (`ragged_nest`, `ragged_explode`, `ragged_axes`,
//! `summarize`), and `meds_features` and `meds_cohort`. Calls such as `read_parquet(..)` become
//! names of files.
//!
//! The first argument of a function over queries is a query, in parentheses or as a string, or the
//! name of a table or file. [`rewrite`] turns each form into a query in parentheses when a
//! statement is parsed, so that its tables are resolved with those of the statement. The
//! [`TableFunctionsPlanner`] plans the call.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, Query, TableFactor, Value,
};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use crate::sql::base::syntax::{split_argument, to_plain_name, unquote_text};
use crate::sql::exec::explode;
use crate::sql::from::derived::{DerivationKind, DerivedTable};
use crate::sql::from::distinct_names::check_distinct_options;
use crate::sql::from::rewrite::{OVER_QUERIES, QueryParser, rewrite_factor};
use crate::sql::from::{axes, read_functions, rewrite, summarize};
use crate::sql::sources::{cohort, features};

/// Whether `name` is the name of a table function that this module plans, or that reads files.
/// DataFusion's lists of functions do not contain these names.
pub(in crate::sql) fn is_table_function(name: &str) -> bool {
    OVER_QUERIES.contains(&name)
        || [features::NAME, cohort::NAME].contains(&name)
        || read_functions::find_function_format(name).is_some()
}

#[derive(Debug)]
pub(in crate::sql) struct TableFunctionsPlanner {
    parse: QueryParser,
}

impl TableFunctionsPlanner {
    pub(in crate::sql) fn new(parse: QueryParser) -> Self {
        Self { parse }
    }
}

impl RelationPlanner for TableFunctionsPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let mut relation = relation;
        // `ctx.sql` plans statements without a rewrite, so their calls are rewritten here.
        rewrite_factor(&mut relation, self.parse)?;
        let TableFactor::Table { name, alias, args: Some(args), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(function) = to_plain_name(name) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if is_table_function(&function) {
            check_distinct_options(&function, &args.args)?;
        }
        let table = match function.as_str() {
            features::NAME => Some(features::make_features_table(&args.args)?),
            cohort::NAME => Some(cohort::make_cohort_table(&args.args)?),
            _ => None,
        };
        if let Some(table) = table {
            let plan =
                LogicalPlanBuilder::scan(&function, provider_as_source(table), None)?.build()?;
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
                plan,
                alias.clone(),
            ))));
        }
        if !OVER_QUERIES.contains(&function.as_str()) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let (query, rest) = QueryArguments::split_query(&function, &args.args)?;
        let input = plan_query(query, context)?;
        let config = context.context_provider().options();
        let plan = match function.as_str() {
            "ragged_nest" => {
                rest.refuse_options(&function)?;
                let keys = rest.read_string_arguments(&function)?;
                let how = DerivationKind::new_nest(keys);
                scan_derived(&function, DerivedTable::try_new(input, how, config)?)?
            }
            "ragged_explode" => {
                let how = DerivationKind::Explode(rest.explode_options()?);
                scan_derived(&function, DerivedTable::try_new(input, how, config)?)?
            }
            "ragged_axes" => {
                rest.expect_none(&function)?;
                axes::plan_axes(input)?
            }
            _ => {
                rest.expect_none(&function)?;
                summarize::plan_summary(input)?
            }
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

fn scan_derived(function: &str, table: DerivedTable) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan(function, provider_as_source(Arc::new(table)), None)?.build()
}

/// Plans the query argument of a function and keeps its ORDER BY, which DataFusion drops in
/// subqueries.
fn plan_query(query: &Query, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let mut query = query.clone();
    // DataFusion keeps a sort of a subquery only with a limit, so the query gets a limit that is
    // greater than any number of rows.
    let pinned = query.order_by.is_some() && query.limit_clause.is_none() && query.fetch.is_none();
    if pinned {
        query.limit_clause = rewrite::build_largest_limit();
    }
    let derived = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: None,
        sample: None,
    };
    match context.plan(derived)? {
        LogicalPlan::Limit(limit) if pinned => Ok(Arc::unwrap_or_clone(limit.input)),
        plan => Ok(plan),
    }
}

struct QueryArguments<'a> {
    values: Vec<&'a SqlExpr>,
    options: Vec<(String, &'a SqlExpr)>,
}

impl<'a> QueryArguments<'a> {
    /// Splits the arguments of a call into the query and all other arguments. Returns an error if
    /// the first argument is not a query.
    fn split_query(function: &str, args: &'a [FunctionArg]) -> Result<(&'a Query, Self)> {
        let mut rest = Self { values: Vec::new(), options: Vec::new() };
        for arg in args {
            match split_argument(arg) {
                Some((None, value)) => rest.values.push(value),
                Some((Some(name), value)) => rest.options.push((name, value)),
                None => {
                    return plan_err!(
                        "{function}: {arg} is not a valid argument; pass strings, or \
                 options such as name => value"
                    );
                }
            }
        }
        if rest.values.is_empty() {
            return plan_err!(
                "{function} takes a query or a table as its first argument, but none is given; write, for example, {}",
                find_example_call(function)
            );
        }
        let mut first = rest.values.remove(0);
        while let SqlExpr::Nested(inner) = first {
            first = inner;
        }
        match first {
            SqlExpr::Subquery(query) => Ok((query, rest)),
            other => plan_err!(
                "{function}: the first argument must be a query or the name of a table or file, not \
                 {other}; write, for example, {}",
                find_example_call(function)
            ),
        }
    }

    fn expect_none(&self, function: &str) -> Result<()> {
        self.refuse_options(function)?;
        match self.values.first() {
            None => Ok(()),
            Some(more) => plan_err!("{function} takes one argument; remove {more}"),
        }
    }

    fn refuse_options(&self, function: &str) -> Result<()> {
        match self.options.first() {
            None => Ok(()),
            Some((name, _)) => {
                plan_err!(
                    "{function} has no options, so {name} => .. is not accepted; write, for example, {}",
                    find_example_call(function)
                )
            }
        }
    }

    /// Returns the arguments after the query. One that is neither a string nor the name of a column
    /// is an error.
    fn read_string_arguments(&self, function: &str) -> Result<Vec<String>> {
        self.values
            .iter()
            .map(|value| match value {
                SqlExpr::Identifier(name) if name.quote_style.is_some() => Ok(name.value.clone()),
                SqlExpr::Identifier(name) => Ok(name.value.to_lowercase()),
                value => match unquote_text(value) {
                    Some(text) => Ok(text.to_owned()),
                    None => {
                        plan_err!(
                            "{function}: expected the name of a column, found {value}; write, for example, {}",
                            find_example_call(function)
                        )
                    }
                },
            })
            .collect()
    }

    fn explode_options(&self) -> Result<explode::ExplodeOptions> {
        let function = "ragged_explode";
        if let Some(more) = self.values.first() {
            return plan_err!(
                "{function}: the argument {more} has no name; name every argument after the first, for example: {}",
                find_example_call(function)
            );
        }
        let mut options = explode::ExplodeOptions::default();
        for (name, value) in &self.options {
            let SqlExpr::Value(on) = value else {
                return plan_err!(
                    "{function}: the option {name} must be true or false, not {value}"
                );
            };
            let Value::Boolean(on) = on.value else {
                return plan_err!(
                    "{function}: the option {name} must be true or false, not {value}"
                );
            };
            match name.as_str() {
                "keep_empty" => options.keep_empty = on,
                "positions" => options.positions = on,
                _ => {
                    return plan_err!(
                        "{function} has no option {name}; its options are keep_empty and positions"
                    );
                }
            }
        }
        Ok(options)
    }
}

fn find_example_call(function: &str) -> &'static str {
    match function {
        "ragged_nest" => {
            "ragged_nest('SELECT .. FROM events', 'subject_id', 'time'), ragged_nest('events', 'subject_id')"
        }
        "ragged_explode" => {
            "ragged_explode('patients'), ragged_explode('SELECT .. FROM patients', keep_empty => true, positions => true)"
        }
        "ragged_axes" => "ragged_axes('patients'), ragged_axes('patients.nrt')",
        _ => "SUMMARIZE patients, FROM summarize('patients')",
    }
}
