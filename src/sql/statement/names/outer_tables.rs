//! Reads `t.a` as a column of an outer table `t` where a table of the subquery has a column `t`.
//!
//! In `SELECT (SELECT count(*) FROM u WHERE u.a = t.a) FROM t`, DataFusion takes `t.a` for a field
//! of `u.t`, and fails if the column `u.t` has no fields. DuckDB then reads the column `a` of the
//! outer table. So `t.a` gets a schema as third part, with which it can only be the column of the
//! outer table: DataFusion compares the schemas of two tables only if both have one. If `u.t` may
//! have fields, `t.a` stays the field, as in DuckDB. This workaround is obsolete once the test
//! `stock_columns_of_outer_tables_are_still_read_as_fields` fails.

use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, Expr, Ident, Query, Select, SetExpr, Statement, TableFactor, VisitMut, VisitorMut,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr as PlannedExpr, ExprSchemable, LogicalPlan};

use crate::array::leaf_type;
use crate::sql::base::syntax::parse_query;
use crate::sql::statement::folding::fold_name;
use crate::sql::statement::names::outer_fields::{
    OUTER, OwnFields, VisibleTable, access_fields, split_name,
};
use crate::sql::statement::planned_parts::{add_queries, plan_alone};
use crate::sql::statement::scopes::{CteScopes, LambdaParameters, is_apart};

/// The names of the columns of a FROM, each with whether it may have fields; `None` if the columns
/// are unknown.
type FromColumnNames = Option<HashMap<String, bool>>;

/// Whether a statement has a name such as `t.a` where only an outer query has a table `t`.
pub(in crate::sql::statement) fn has_outer_names<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> bool {
    let mut names = OuterTables::new(state, false);
    let _ = statement.visit(&mut names);
    names.found.iter().any(|found| found.is_needed)
}

/// Adds a schema to each name `t.a` that means a column of a table `t` in an enclosing query, but
/// that DataFusion would read as the field `a` of a column `t`. Returns whether a name was changed.
pub(in crate::sql::statement) async fn name_outer_tables<S: VisitMut>(
    state: &SessionState,
    statement: &mut S,
) -> bool {
    let mut is_changed = false;
    // A FROM with subqueries can be planned only after the names in the subqueries are changed. So
    // both passes, the one that collects each FROM and the one that changes names, run again until
    // no name changes.
    loop {
        let mut names = OuterTables::new(state, true);
        let _ = statement.visit(&mut names);
        let mut known = Vec::with_capacity(names.found.len());
        for found in names.found {
            known.push(match found.query {
                Some(query) if found.is_needed => find_columns(state, query).await,
                Some(_) => None,
                // A SELECT without FROM has no columns.
                None => Some(HashMap::new()),
            });
        }
        let mut changed = OuterTables::new(state, false);
        changed.known = Some(known);
        let _ = statement.visit(&mut changed);
        if !changed.is_changed {
            return is_changed;
        }
        is_changed = true;
    }
}

/// Whether a plan reads a field of a value that has no fields. DataFusion's planner reports this
/// error in a SELECT list, but not in a condition such as WHERE, so planning may succeed.
pub(in crate::sql::statement) fn has_wrong_field(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|e| {
            e.apply(|e| {
                found |= matches!(e, PlannedExpr::ScalarFunction(call)
                    if call.name() == "get_field" && e.get_type(&schema).is_err());
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    found && walked.is_ok()
}

async fn find_columns(state: &SessionState, query: Query) -> FromColumnNames {
    let plan = plan_alone(state, query).await?;
    let mut columns: HashMap<String, bool> = HashMap::new();
    for field in plan.schema().fields() {
        *columns.entry(field.name().clone()).or_default() |= may_have_fields(field.data_type());
    }
    Some(columns)
}

fn may_have_fields(data_type: &DataType) -> bool {
    match leaf_type(data_type) {
        DataType::Dictionary(_, values) => may_have_fields(values),
        leaf => leaf.is_nested() || leaf.is_null(),
    }
}

struct FoundFrom {
    /// A query of all columns of the FROM. `None` if the SELECT has no FROM, and in the pass that
    /// changes names.
    query: Option<Query>,
    /// Whether a name in the SELECT may refer to an outer table, so that the columns of this FROM
    /// must be known.
    is_needed: bool,
}

/// Visitor that collects each FROM in `found`, and changes the names if `known` is set.
struct OuterTables {
    names: OwnFields,
    ctes: CteScopes<Cte>,
    /// For each entry of `names.scopes`, the index in `found` of the SELECT with these tables.
    selects: Vec<Option<usize>>,
    /// For each subquery in FROM around the current position, the last entries of `names.scopes`
    /// and `selects`. They are removed while the subquery is visited, because it does not see the
    /// tables next to it.
    hidden: Vec<(Vec<VisibleTable>, Option<usize>)>,
    parameters: LambdaParameters,
    found: Vec<FoundFrom>,
    collects: bool,
    /// The columns of each FROM in `found`.
    known: Option<Vec<FromColumnNames>>,
    is_changed: bool,
}

impl OuterTables {
    fn new(state: &SessionState, collects: bool) -> Self {
        Self {
            names: OwnFields::new(state),
            ctes: CteScopes::default(),
            selects: Vec::new(),
            hidden: Vec::new(),
            parameters: LambdaParameters::default(),
            found: Vec::new(),
            collects,
            known: None,
            is_changed: false,
        }
    }

    fn build_query(&self, select: &Select) -> Option<Query> {
        if !self.collects || select.from.is_empty() {
            return None;
        }
        let mut query = parse_query("SELECT * FROM t").ok()?;
        if let SetExpr::Select(star) = query.body.as_mut() {
            star.from.clone_from(&select.from);
        }
        Some(add_queries(query, &self.ctes))
    }

    /// Returns a name such as `t.a` with a schema before it if DataFusion would take the name for a
    /// field. Otherwise, returns `None`. In the pass that collects each FROM, always returns
    /// `None`, and sets `is_needed` of each FROM whose columns must be known.
    fn qualify_name(&mut self, expr: &Expr) -> Option<Expr> {
        let (mut column, rest) = split_name(expr, 2)?;
        let table = fold_name(column.first()?);
        if self.parameters.contains(&table) {
            return None;
        }
        let find = |scope: &[VisibleTable], name: &str| scope.iter().position(|of| of.name == name);
        let scopes = &self.names.scopes;
        // `s.t.a` may be column `a` of a table `t` in the schema `s`, so the name stays unchanged.
        let second = column.get(1).filter(|_| column.len() > 2).map(fold_name);
        if second.is_some_and(|name| scopes.iter().any(|scope| find(scope, &name).is_some())) {
            return None;
        }
        let outer = scopes.iter().rposition(|scope| find(scope, &table).is_some())?;
        let inner = self.selects.iter().skip(outer.saturating_add(1)).flatten();
        let Some(known) = &self.known else {
            for select in inner {
                if let Some(found) = self.found.get_mut(*select) {
                    found.is_needed = true;
                }
            }
            return None;
        };
        let mut has_column = false;
        for select in inner {
            match known.get(*select)?.as_ref()?.get(&table) {
                Some(true) => return None,
                Some(false) => has_column = true,
                None => {}
            }
        }
        if !has_column {
            return None;
        }
        let relation = scopes.get(outer)?.iter().find(|of| of.name == table)?;
        let schema = relation.path.as_ref().map_or(OUTER, |[_, schema]| schema.as_str());
        let fields = column.split_off(2);
        column.insert(0, Ident::with_quote('"', schema));
        Some(match fields.is_empty() && rest.is_empty() {
            true => Expr::CompoundIdentifier(column),
            false => access_fields(column, &fields, rest),
        })
    }
}

impl VisitorMut for OuterTables {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.selects.push(None);
        self.names.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        self.selects.pop();
        self.names.post_visit_statement(statement)
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.collects {
            self.ctes.enter_query(query);
        }
        self.selects.push(None);
        self.names.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.collects {
            self.ctes.leave_scope();
        }
        self.selects.pop();
        self.names.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // The index in `found` is kept until the end of the query, because its ORDER BY, which is
        // visited after the SELECT, sees the same tables.
        if let Some(last) = self.selects.last_mut() {
            *last = Some(self.found.len());
        }
        let query = self.build_query(select);
        self.found.push(FoundFrom { query, is_needed: false });
        self.names.pre_visit_select(select)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_apart(factor) {
            let scope = self.names.scopes.last_mut().map(std::mem::take).unwrap_or_default();
            let select = self.selects.last_mut().and_then(Option::take);
            self.hidden.push((scope, select));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_apart(factor)
            && let Some((scope, select)) = self.hidden.pop()
        {
            if let Some(last) = self.names.scopes.last_mut() {
                *last = scope;
            }
            if let Some(last) = self.selects.last_mut() {
                *last = select;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.parameters.enter_expr(expr);
        if let Some(named) = self.qualify_name(expr) {
            *expr = named;
            self.is_changed = true;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.parameters.leave_expr(expr);
        ControlFlow::Continue(())
    }
}
