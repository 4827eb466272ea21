//! Tells floats of outer rows apart by their bits.
//!
//! A query may return different values for -0.0 and 0.0, but [`FloatKeys`](crate::sql::mends::float_keys)
//! groups and joins them as equal.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{
    Column, DFSchema, JoinConstraint, JoinType, NullEquality, exec_err, plan_err,
};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serrate_core::internal::holds_float;

static EXACT_KEY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(ExactKey { signature }))
});

/// Returns the function that marks exact keys, for plans that are sent to worker processes.
#[cfg(feature = "cluster")]
pub(in crate::sql) fn exact_key_function() -> Arc<ScalarUDF> {
    Arc::clone(&EXACT_KEY)
}

/// Whether an expression is a key that is compared by its bits.
pub(in crate::sql) fn is_exact_key(e: &Expr) -> bool {
    matches!(e, Expr::ScalarFunction(call) if call.func.inner().is::<ExactKey>())
}

/// Returns a column as a key that is compared by its bits.
pub(super) fn as_key(column: Column, schema: &DFSchema) -> Expr {
    let column = Expr::Column(column);
    match column.get_type(schema) {
        Ok(t) if holds_float(&t) => EXACT_KEY.call(vec![column]),
        _ => column,
    }
}

/// Returns a column as a group key, which keeps its name.
pub(super) fn as_group(column: Column, schema: &DFSchema) -> Expr {
    let (relation, name) = (column.relation.clone(), column.name.clone());
    match as_key(column, schema) {
        Expr::Column(column) => Expr::Column(column),
        key => key.alias_qualified(relation, name),
    }
}

/// Returns the distinct rows of a plan, in which the columns `keys` are compared by their bits.
pub(super) fn distinct_rows(rows: LogicalPlan, keys: &[Column]) -> Result<LogicalPlan> {
    let schema = Arc::clone(rows.schema());
    let is_float = |key: &Column| !matches!(as_key(key.clone(), &schema), Expr::Column(_));
    let rows = LogicalPlanBuilder::from(rows);
    if !keys.iter().any(is_float) {
        return rows.distinct()?.build();
    }
    let groups = schema.columns().into_iter().map(|column| match keys.contains(&column) {
        true => as_group(column, &schema),
        false => Expr::Column(column),
    });
    rows.aggregate(groups, Vec::<Expr>::new())?.build()
}

/// Joins two plans on equal columns, in which floats are compared by their bits and NULL equals NULL.
pub(super) fn join_by_keys(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    keys: (Vec<Column>, Vec<Column>),
    filter: Option<Expr>,
) -> Result<LogicalPlan> {
    let key_of = |column: Column, schema: &DFSchema| -> Result<Expr> {
        let at = schema.index_of_column(&column)?;
        Ok(as_key(Column::from(schema.qualified_field(at)), schema))
    };
    let pairs = keys.0.into_iter().zip(keys.1);
    let on = pairs.map(|(l, r)| Ok((key_of(l, left.schema())?, key_of(r, right.schema())?)));
    let on = on.collect::<Result<Vec<_>>>()?;
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    Ok(LogicalPlan::Join(joined))
}

/// Returns its argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactKey {
    signature: Signature,
}

impl ScalarUDFImpl for ExactKey {
    fn name(&self) -> &str {
        "exact_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [t] => Ok(t.clone()),
            _ => plan_err!("internal error: exact_key takes 1 argument; please report it"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(Arc::clone(field)),
            _ => plan_err!("internal error: exact_key takes 1 argument; please report it"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(key) => Ok(key),
            None => exec_err!("internal error: exact_key takes 1 argument; please report it"),
        }
    }
}
