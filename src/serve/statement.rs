//! Parses and plans statements of clients, and refuses settings that belong to the server.

use std::sync::Mutex;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::sqlparser::ast::{Expr as SqlExpr, Statement as SqlStatement};
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use serrate_core::internal::lock_mutex;
use tonic::Status;

use super::status::{to_invalid, to_status};
use super::wire_types::to_wire_schema;
use crate::config::{SerrateOptions, parse_bytes};
use crate::sql::{bind_parameters, count_parameters_of, is_prepare, number_parameters};

/// Settings that determine how much memory a session uses, each with the largest value that a
/// session is allowed to set.
const LIMITS: [(&str, u64); 7] = [
    ("datafusion.execution.target_partitions", 1 << 10),
    ("datafusion.execution.planning_concurrency", 1 << 10),
    ("datafusion.execution.meta_fetch_concurrency", 1 << 10),
    ("datafusion.execution.batch_size", 1 << 20),
    ("datafusion.sql_parser.recursion_limit", 1 << 10),
    ("serrate.leaf_batch_size", 1 << 26),
    // The buffer of each connection to a worker.
    ("distributed.worker_connection_buffer_budget_bytes", 64 << 20),
];

pub(super) struct PreparedStatement {
    statement: Statement,
    /// Number of parameters.
    pub(super) count: usize,
    bound: Mutex<BoundRows>,
}

/// Values of the parameters of a statement: one list per row that its client has bound.
#[derive(Default)]
pub(super) struct BoundRows {
    rows: Vec<Vec<SqlExpr>>,
    /// The memory of the values, which counts towards the memory limit.
    _memory: Option<MemoryReservation>,
}

impl BoundRows {
    pub(super) fn new(rows: Vec<Vec<SqlExpr>>, memory: MemoryReservation) -> Self {
        Self { rows, _memory: Some(memory) }
    }
}

/// Types of a prepared statement's parameters and result, as far as known without their values.
#[derive(Debug)]
pub(super) struct PreparedTypes {
    pub(super) parameters: Schema,
    /// Schema of the result. `None` if the types of its columns depend on the values of parameters.
    pub(super) result: Option<SchemaRef>,
}

impl PreparedStatement {
    pub(super) fn set_rows(&self, bound: BoundRows) {
        *lock_mutex(&self.bound) = bound;
    }

    /// Returns one copy of the statement for each row that the client has bound. In each copy, the
    /// values of the row replace the parameters. A statement without parameters is returned once.
    pub(super) fn bind_rows(&self) -> Result<Vec<Statement>, Status> {
        if self.count == 0 {
            return Ok(vec![self.statement.clone()]);
        }
        let bound = lock_mutex(&self.bound);
        if bound.rows.is_empty() {
            return Err(to_invalid(format!(
                "the statement has {} parameter(s) without values; bind a row of values first",
                self.count
            )));
        }
        let bind = |arguments: &Vec<SqlExpr>| {
            let mut statement = self.statement.clone();
            bind_parameters(&mut statement, arguments);
            statement
        };
        Ok(bound.rows.iter().map(bind).collect())
    }
}

fn parse_one(ctx: &SessionContext, text: &str) -> Result<Statement> {
    let mut statements = crate::sql::parse(ctx, text)?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => plan_err!("the SQL text has no statement; write one"),
        (Some(_), others) => plan_err!(
            "the SQL text has {} statements; send each in its own request",
            others.saturating_add(1)
        ),
    }
}

/// Parses `text`. Returns an error unless it is exactly one statement without parameters.
pub(super) fn parse_complete(ctx: &SessionContext, text: &str) -> Result<Statement> {
    let mut statement = parse_one(ctx, text)?;
    if !is_prepare(&statement) {
        number_parameters(&mut statement);
        if count_parameters_of(&statement) != Some(0) {
            return plan_err!(
                "the statement has parameters; prepare it, and bind a value to each parameter"
            );
        }
    }
    Ok(statement)
}

/// Parses a statement that may have parameters `?` or `$1`. Finds the types of the parameters and
/// of the result.
pub(super) async fn prepare_statement(
    ctx: &SessionContext,
    text: &str,
) -> Result<(PreparedStatement, PreparedTypes)> {
    let mut statement = parse_one(ctx, text)?;
    let count = match is_prepare(&statement) {
        // The parameters in a PREPARE get their values from EXECUTE, not from the client.
        true => 0,
        false => {
            number_parameters(&mut statement);
            let Some(count) = count_parameters_of(&statement) else {
                return plan_err!(
                    "the parameters of the statement have names; write ? or $1, $2, .. instead"
                );
            };
            count
        }
    };
    let types = find_types(ctx, &statement, count).await?;
    Ok((PreparedStatement { statement, count, bound: Mutex::default() }, types))
}

async fn find_types(
    ctx: &SessionContext,
    statement: &Statement,
    count: usize,
) -> Result<PreparedTypes> {
    let plan = match changes_when_planned(statement) {
        true => None,
        false => match crate::sql::plan(ctx, statement.clone()).await {
            Ok(plan) => Some(plan),
            // If the statement has parameters, the error may be that a function needs the value of
            // one. The types are then unknown, and the statement is prepared all the same.
            Err(_) if count > 0 => None,
            Err(e) => return Err(e),
        },
    };
    let known = match &plan {
        Some(plan) => plan.get_parameter_types()?,
        None => Default::default(),
    };
    let parameters = (1..=count).map(|number| {
        let name = format!("${number}");
        let data_type = known.get(&name).cloned().flatten().unwrap_or(DataType::Null);
        Field::new(name, data_type, true)
    });
    let parameters = Schema::new(parameters.collect::<Vec<_>>());
    let result = match &plan {
        Some(plan) if has_effect(plan) => Some(SchemaRef::new(Schema::empty())),
        Some(_) if count > 0 => None,
        Some(_) => Some(find_schema(ctx, statement.clone()).await?),
        None => None,
    };
    Ok(PreparedTypes { parameters, result })
}

/// Whether a statement changes the session as soon as it is planned. Such a statement is planned
/// only when it runs.
fn changes_when_planned(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(inner) if matches!(
        inner.as_ref(),
        SqlStatement::CreateView(_) | SqlStatement::Prepare { .. } | SqlStatement::Deallocate { .. }
    ))
}

/// Returns the schema that clients receive for a statement. For a query, this is the schema of its
/// rows in wire types. For any other statement, it is empty.
pub(super) async fn find_schema(ctx: &SessionContext, statement: Statement) -> Result<SchemaRef> {
    if changes_when_planned(&statement) {
        return Ok(SchemaRef::new(Schema::empty()));
    }
    let plan = crate::sql::plan(ctx, statement).await?;
    check_settings(ctx, &plan)?;
    if has_effect(&plan) {
        return Ok(SchemaRef::new(Schema::empty()));
    }
    let frame = ctx.execute_logical_plan(plan).await.map_err(crate::sql::convert_internal_error)?;
    let plan = frame.create_physical_plan().await.map_err(crate::sql::convert_internal_error)?;
    Ok(to_wire_schema(&plan.schema()))
}

/// Whether a statement changes tables, files or the session. A statement without effect is a query.
pub(super) fn has_effect(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Ddl(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
    )
}

/// Returns an error if a statement sets or resets a setting that belongs to the server, such as the
/// memory limit, or if it sets another setting, such as one of [`LIMITS`], to more than its
/// maximum.
pub(super) fn check_settings(ctx: &SessionContext, plan: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Statement(statement) = plan else { return Ok(()) };
    let (name, value) = match statement {
        PlanStatement::SetVariable(set) => (&set.variable, Some(set.value.as_str())),
        PlanStatement::ResetVariable(reset) => (&reset.variable, None),
        _ => return Ok(()),
    };
    let name = name.to_ascii_lowercase();
    if name == "serrate.memory_limit" || name.starts_with("datafusion.runtime.") {
        return plan_err!(
            "the setting {name} belongs to the server, so a session cannot change it; start the server with --memory-limit instead"
        );
    }
    let Some(value) = value else { return Ok(()) };
    if name == "serrate.max_dense_bytes" {
        let now = SerrateOptions::of(ctx.state_ref().read().config_options()).max_dense_bytes;
        let most = SerrateOptions::default().max_dense_bytes.max(now);
        if parse_bytes(value).is_ok_and(|bytes| bytes > most) {
            return plan_err!(
                "a session can set serrate.max_dense_bytes to at most {most} bytes, not to {value}; return fewer rows or shorter lists"
            );
        }
    }
    let limit = LIMITS.iter().find(|(limited, _)| *limited == name);
    if let Some((_, most)) = limit
        && value.trim().parse::<u64>().is_ok_and(|number| number > *most)
    {
        return plan_err!(
            "a session can set {name} to at most {most}, not to {value}; set a smaller value"
        );
    }
    Ok(())
}

/// Returns the status of an error of planning. The code is `PermissionDenied` if the statement
/// changed a setting that belongs to the server.
pub(super) fn to_plan_status(e: &datafusion::error::DataFusionError) -> Status {
    let status = to_status(e);
    match status.message().contains("belongs to the server") {
        true => Status::permission_denied(status.message()),
        false => status,
    }
}
