//! Reports a NULL that INSERT writes to a NOT NULL column with the name of the column.

use std::sync::{Arc, LazyLock};

use arrow::array::Array;
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Values, Volatility, WriteOp, lit,
};

use crate::functions::{declare, take_first};
use crate::sql::base::plan_nodes::rewrite_change;
use crate::sql::sources::listing::FilesTable;

static NOT_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(NotNull)));

/// Analyzer rule: checks the rows of an INSERT for NULL in the columns that are declared NOT NULL.
///
/// DataFusion 55 checks the rows, too, but its error has only the position of the column or, for
/// VALUES, a name such as `column1`. This workaround is obsolete once the test
/// `stock_errors_of_null_still_lack_the_column` fails.
pub(in crate::sql) fn check_inserted_nulls(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_change(plan, check_columns)
}

fn check_columns(insert: DmlStatement) -> Result<DmlStatement> {
    let table = find_inserted_schema(&insert);
    let is_required = |at: usize| table.fields().get(at).is_some_and(|field| !field.is_nullable());
    let count = insert.input.schema().fields().len();
    let is_insert = matches!(insert.op, WriteOp::Insert(_));
    if !is_insert || count != table.fields().len() || !(0..count).any(is_required) {
        return Ok(insert);
    }
    let input = make_values_nullable(insert.input.as_ref().clone())?;
    let found = input.schema();
    let columns = found.columns().into_iter().zip(found.fields()).zip(table.fields());
    let columns = columns.map(|((column, field), target)| {
        let column = Expr::Column(column);
        match field.is_nullable() && !target.is_nullable() {
            true => {
                let name = target.name();
                NOT_NULL.call(vec![column, lit(name.as_str())]).alias(name)
            }
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let input = match columns.iter().all(|column| matches!(column, Expr::Column(_))) {
        true => input,
        false => LogicalPlanBuilder::from(input).project(columns)?.build()?,
    };
    Ok(DmlStatement { input: Arc::new(input), ..insert })
}

fn find_inserted_schema(insert: &DmlStatement) -> SchemaRef {
    let provider = source_as_provider(&insert.target).ok();
    let files = provider.as_ref().and_then(|provider| provider.downcast_ref::<FilesTable>());
    files.map_or_else(|| insert.target.schema(), |files| Arc::clone(files.inserted_schema()))
}

/// Makes the columns of VALUES nullable. The planner has given them the nullability of the columns
/// of the table, with which a NULL would be an error before the check.
fn make_values_nullable(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_required = |plan: &LogicalPlan| match plan {
        LogicalPlan::Values(values) => values.schema.fields().iter().any(|f| !f.is_nullable()),
        _ => false,
    };
    if !plan.exists(|node| Ok(is_required(node)))? {
        return Ok(plan);
    }
    let changed = plan.transform_up(|node| match node {
        LogicalPlan::Values(values) => {
            Ok(Transformed::yes(LogicalPlan::Values(make_columns_nullable(values)?)))
        }
        node => node.recompute_schema().map(Transformed::yes),
    })?;
    Ok(changed.data)
}

fn make_columns_nullable(values: Values) -> Result<Values> {
    let fields = values.schema.iter().map(|(table, field)| {
        (table.cloned(), Arc::new(field.as_ref().clone().with_nullable(true)))
    });
    let metadata = values.schema.metadata().clone();
    let schema = Arc::new(DFSchema::new_with_metadata(fields.collect(), metadata)?);
    Ok(Values { schema, ..values })
}

/// Returns the function that [`check_inserted_nulls`] inserts. Workers of a distributed query need
/// it to decode plans.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn get_not_null_function() -> Arc<ScalarUDF> {
    Arc::clone(&NOT_NULL)
}

/// Returns its first argument, or an error if a value of it is NULL. The second argument is the
/// name of the column, for the error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NotNull;

impl ScalarUDFImpl for NotNull {
    declare!("not_null", Signature::any(2, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = take_first(self.name(), args.arg_fields)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(false).with_name(self.name())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args.into_iter();
        let (value, name) = (take_first(self.name(), &mut args)?, args.next());
        let has_null = match &value {
            ColumnarValue::Array(array) => array.logical_null_count() > 0,
            ColumnarValue::Scalar(scalar) => scalar.is_null(),
        };
        if has_null {
            let name = match &name {
                Some(ColumnarValue::Scalar(name)) => name.try_as_str().flatten(),
                _ => None,
            };
            return exec_err!(
                "the column '{}' is non-nullable (NOT NULL), but a row of the INSERT has NULL in it; give it a value, such as coalesce(x, 0)",
                name.unwrap_or_default()
            );
        }
        Ok(value)
    }
}
