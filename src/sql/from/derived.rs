//! Tables that nest or explode the rows of a query: `ragged_nest` and `ragged_explode`.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown,
};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::functions::remove_other_extension;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::subquery_parts::uses_only_row;
use crate::sql::exec::explode::{ExplodeExec, ExplodeOptions, explode_batch};
use crate::sql::exec::nest::{NestExec, nest_batch};
use crate::sql::from::distinct_names::check_distinct_names;
use crate::sql::order::{fix_memory, in_source_order, pin_order, pin_sorts};
use crate::sql::rules::coerce_types;
use crate::sql::sources::{accept_filters, describe_table, select_columns};

#[derive(Clone, Debug)]
pub(super) enum DerivationKind {
    /// `ragged_nest`: groups rows that are equal in the columns with these names into one ragged
    /// row.
    Nest(Vec<String>),
    /// `ragged_explode`: returns one row per innermost element of the lists in each row.
    Explode(ExplodeOptions),
}

impl DerivationKind {
    pub(super) fn new_nest(keys: Vec<String>) -> Self {
        Self::Nest(keys)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Nest(_) => "ragged_nest",
            Self::Explode(_) => "ragged_explode",
        }
    }
}

/// The table that `ragged_nest` or `ragged_explode` makes of a query. Each scan of the table plans
/// the query again, with the columns and conditions of the scan.
#[derive(Debug)]
pub(super) struct DerivedTable {
    query: LogicalPlan,
    how: DerivationKind,
    schema: SchemaRef,
}

impl DerivedTable {
    /// Creates the table. Returns an error if the query lacks a key column, or if its columns do
    /// not form a ragged table.
    pub(super) fn try_new(
        query: LogicalPlan,
        how: DerivationKind,
        config: &ConfigOptions,
    ) -> Result<Self> {
        check_distinct_names(how.name(), query.schema())?;
        // Takes the schema of the query after type coercion, because coercion changes the types of
        // CASE and some other expressions.
        let coerced = coerce_types(query.clone(), config)?;
        let none = RecordBatch::new_empty(Arc::new(coerced.schema().as_arrow().clone()));
        let schema = match &how {
            DerivationKind::Nest(keys) => {
                if keys.is_empty() {
                    return plan_err!(
                        "ragged_nest takes a table and the columns to nest by, the outermost first, but no column is given; write ragged_nest('events', 'subject_id', 'time')"
                    );
                }
                nest_batch(&none, keys)?.arrow_schema()?
            }
            DerivationKind::Explode(options) => explode_batch(&none, *options)?.schema(),
        };
        // The schema is derived from an empty batch, which does not show whether exploded columns
        // have NULL, so these columns are declared nullable.
        let given = none.schema();
        let fields = schema.fields().iter().map(|f| {
            let own = given.fields().find(f.name()).map(|(_, own)| Arc::clone(own));
            let field = remove_other_extension(Arc::clone(f), own.as_slice());
            match &how {
                DerivationKind::Nest(_) => field,
                DerivationKind::Explode(_) => field.with_nullable(true),
            }
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { query, how, schema })
    }

    fn find_needed_columns(&self, columns: &[usize]) -> Result<Vec<Expr>> {
        let mut names: Vec<&str> =
            columns.iter().map(|c| self.schema.field(*c).name().as_str()).collect();
        match &self.how {
            DerivationKind::Nest(keys) => names.extend(keys.iter().map(String::as_str)),
            // Adds the most deeply nested column, even if the scan does not return it, because the
            // number of rows depends on its list lengths.
            DerivationKind::Explode(_) => {
                let fields = self.query.schema().fields();
                let depth = |f: &arrow::datatypes::Field| crate::array::list_depth(f.data_type());
                let structs =
                    fields.iter().any(|f| crate::array::leaf_type(f.data_type()).is_nested());
                if structs {
                    names = fields.iter().map(|f| f.name().as_str()).collect();
                } else if let Some(deepest) = fields.iter().max_by_key(|f| depth(f)) {
                    names.push(deepest.name());
                }
            }
        }
        let schema = self.query.schema();
        Ok(schema
            .iter()
            .filter(|(_, field)| names.contains(&field.name().as_str()))
            .map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name())))
            .collect())
    }

    fn rewrite_condition(&self, condition: &Expr) -> Result<Expr> {
        let schema = self.query.schema();
        let moved = condition.clone().transform(|e| {
            let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
            let (table, field) = schema.qualified_field_with_unqualified_name(&column.name)?;
            Ok(Transformed::yes(Expr::Column(Column::new(table.cloned(), field.name()))))
        })?;
        Ok(moved.data)
    }

    /// Whether a condition uses only the first key of `ragged_nest`, which has the same value in a
    /// nested row as in the rows that form it. Returns false for `ragged_explode`, and if the
    /// condition does not depend on the row alone.
    fn is_of_rows(&self, condition: &Expr) -> Result<bool> {
        let DerivationKind::Nest(keys) = &self.how else { return Ok(false) };
        let uses_key = || condition.column_refs().iter().all(|c| keys.first() == Some(&c.name));
        Ok(uses_only_row(condition)? && uses_key())
    }
}

impl TableProvider for DerivedTable {
    describe_table!(View);

    boxed_method!(DerivedTable: scan = plan_scan);

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        accept_filters(filters, |condition| self.is_of_rows(condition))
    }
}

impl DerivedTable {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = select_columns(projection, &self.schema);
        let schema = Arc::new(self.schema.project(&columns)?);
        let query = add_conditions(self.query.clone(), |e| self.rewrite_condition(e), filters)?;
        let query = LogicalPlanBuilder::from(query)
            .project(self.find_needed_columns(&columns)?)?
            .build()?;
        Ok(match &self.how {
            DerivationKind::Nest(keys) => {
                let input = plan_ordered(state, &query).await?;
                Arc::new(NestExec::try_new(input, keys.clone(), schema)?)
            }
            DerivationKind::Explode(options) => {
                let input = pin_sorts(plan_within(state, &query, None).await?)?;
                Arc::new(ExplodeExec::new(input, *options, schema))
            }
        })
    }
}

/// Adds a filter to a query for each of the conditions `filters`, which are on columns of the
/// table. `inside` rewrites such a condition to one on columns of the query.
fn add_conditions(
    query: LogicalPlan,
    inside: impl Fn(&Expr) -> Result<Expr>,
    filters: &[Expr],
) -> Result<LogicalPlan> {
    let mut builder = LogicalPlanBuilder::from(query);
    for condition in filters {
        builder = builder.filter(inside(condition)?)?;
    }
    builder.build()
}

/// Plans a query as one partition whose rows are sorted by its ORDER BY or, without ORDER BY, are
/// in source order: by file, then by position in the file.
async fn plan_ordered(state: &dyn Session, query: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    // Tables in memory get one partition, because DataFusion would repartition them out of order.
    let partitions = has_memory(query)?.then_some(1);
    // Pins the sort. If the output lacks the columns of ORDER BY, no node above can require this
    // order, and the optimizer would remove the sort.
    let mut plan = pin_sorts(plan_within(state, query, partitions).await?)?;
    if partitions.is_some() {
        plan = fix_memory(plan)?;
    }
    if plan.output_ordering().is_some() && plan.output_partitioning().partition_count() == 1 {
        return Ok(pin_order(plan));
    }
    Ok(in_source_order(&plan).unwrap_or(plan))
}

/// Plans a query that becomes part of a statement, for `partitions` partitions or, if this is
/// `None`, for the session's number. The plan has no dynamic filters: the optimizer adds them
/// later, and would no longer swap the inputs of a join that already has such a filter.
async fn plan_within(
    state: &dyn Session,
    query: &LogicalPlan,
    partitions: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(state) = state.as_any().downcast_ref::<SessionState>() else {
        return state.create_physical_plan(query).await;
    };
    let mut config = state.config().clone();
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions);
    }
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.enable_join_dynamic_filter_pushdown = false;
    optimizer.enable_topk_dynamic_filter_pushdown = false;
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    let mut state = state.clone();
    *state.config_mut() = config;
    state.create_physical_plan(query).await
}

fn has_memory(query: &LogicalPlan) -> Result<bool> {
    query.exists(|node| {
        Ok(match node {
            LogicalPlan::TableScan(scan) => {
                source_as_provider(&scan.source).is_ok_and(|t| t.is::<MemTable>())
            }
            LogicalPlan::Values(_) => true,
            _ => false,
        })
    })
}
