//! Makes the columns of CREATE TABLE .. AS a query nullable, so that rows with NULL can be inserted later.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::logical_expr::{
    ColumnarValue, DdlStatement, Expr, LogicalPlan, Projection, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::parser::Statement;

/// The function `or_null`, which returns its argument as nullable. It is volatile, so that no rule folds it.
static OR_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(OrNull::default())));

/// Returns the function `or_null`, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn or_null_function() -> Arc<ScalarUDF> {
    Arc::clone(&OR_NULL)
}

/// Whether a statement creates a table from a query, without declared columns.
pub(super) fn creates_from_query(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    matches!(
        inner.as_ref(),
        SqlStatement::CreateTable(table) if table.query.is_some() && table.columns.is_empty()
    )
}

/// If the plan creates a table, makes all columns of the table nullable.
pub(super) fn with_nullable_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) = plan else {
        return Ok(plan);
    };
    table.input = make_nullable(table.input)?;
    Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
}

/// Makes all columns of a query nullable. The function is called below an ORDER BY, because the optimizer
/// distributes the rows among partitions before it evaluates a projection, which loses their order.
fn make_nullable(query: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    if query.schema().fields().iter().all(|field| field.is_nullable()) {
        return Ok(query);
    }
    let plan = match Arc::unwrap_or_clone(query) {
        LogicalPlan::Sort(mut sort) => {
            sort.input = make_nullable(sort.input)?;
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Limit(mut limit) => {
            limit.input = make_nullable(limit.input)?;
            LogicalPlan::Limit(limit)
        }
        LogicalPlan::Projection(projection) if is_renaming(&projection) => {
            let input = make_nullable(projection.input)?;
            LogicalPlan::Projection(Projection::try_new(projection.expr, input)?)
        }
        query => {
            let columns = query.schema().iter().map(|named| {
                let (column, field) = (Expr::Column(Column::from(named)), named.1);
                match field.is_nullable() {
                    true => column,
                    false => {
                        let call = ScalarFunction::new_udf(Arc::clone(&OR_NULL), vec![column]);
                        Expr::ScalarFunction(call).alias_qualified(named.0.cloned(), field.name())
                    }
                }
            });
            let columns = columns.collect::<Vec<_>>();
            LogicalPlan::Projection(Projection::try_new(columns, Arc::new(query))?)
        }
    };
    Ok(Arc::new(plan))
}

/// Whether a projection above an ORDER BY or LIMIT only selects and renames columns.
fn is_renaming(projection: &Projection) -> bool {
    let is_column = |e: &Expr| match e {
        Expr::Alias(alias) => matches!(*alias.expr, Expr::Column(_)),
        e => matches!(e, Expr::Column(_)),
    };
    matches!(projection.input.as_ref(), LogicalPlan::Sort(_) | LogicalPlan::Limit(_))
        && projection.expr.iter().all(is_column)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

impl Default for OrNull {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &str {
        "or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| {
            internal_datafusion_err!(
                "internal error: or_null takes 1 argument; 0 given; please report it"
            )
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = args.arg_fields.first().ok_or_else(|| {
            internal_datafusion_err!(
                "internal error: or_null takes 1 argument; 0 given; please report it"
            )
        })?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(|| {
            internal_datafusion_err!(
                "internal error: or_null takes 1 argument; 0 given; please report it"
            )
        })
    }
}
