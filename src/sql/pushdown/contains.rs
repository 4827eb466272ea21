//! Conditions on list elements that skip row groups of Parquet files.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::functions_nested::array_has::{array_has_any_udf, array_has_udf};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use crate::array::{leaf_type, list_depth};

/// Physical optimizer rule, before DataFusion's rules: in a condition over Parquet files, rewrites
/// `ragged_any(x == v)` to `array_has(x, v)` and `ragged_any(ragged_isin(x, [..]))` to
/// `array_has_any(x, [..])` if they are equivalent.
///
/// Without this rule, `SELECT * FROM 't.parquet' WHERE ragged_any(x == 5)` decodes all columns of
/// all rows.
///
/// `array_has` and `array_has_any` are the only predicates on lists that the Parquet reader
/// supports. With `datafusion.execution.parquet.pushdown_filters`, as in Serrate's session, the
/// reader decodes the other columns only for matching rows. Without the setting, the plan stays
/// unchanged, because Serrate's functions, which test all flat values at once, are faster. Both
/// kinds of functions are equivalent for one-level lists of integers, strings, booleans and dates,
/// because a condition drops rows for false and NULL alike. The two kinds compare zeros and NaN
/// differently, so conditions on floats are not rewritten.
pub(crate) fn push_contains(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if !config.execution.parquet.pushdown_filters {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        if !reads_parquet(filter.input()) {
            return Ok(Transformed::no(node));
        }
        let schema = filter.input().schema();
        let mut changed = false;
        let conditions = split_conjunction(filter.predicate())
            .into_iter()
            .map(|condition| {
                let known = as_known(condition, &schema, config)?;
                changed |= known.is_some();
                Ok(known.unwrap_or_else(|| Arc::clone(condition)))
            })
            .collect::<Result<Vec<_>>>()?;
        if !changed {
            return Ok(Transformed::no(node));
        }
        let builder = FilterExecBuilder::from(filter).with_predicate(conjunction(conditions));
        Ok(Transformed::yes(Arc::new(builder.build()?) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(plan.data)
}

fn reads_parquet(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let files = scan.data_source().downcast_ref::<FileScanConfig>();
        return files.is_some_and(|files| files.file_source().file_type() == "parquet");
    }
    match plan.children()[..] {
        [input] => reads_parquet(input),
        _ => false,
    }
}

fn as_known(
    condition: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let call = |e: &Arc<dyn PhysicalExpr>, name: &str| {
        let call = e.downcast_ref::<ScalarFunctionExpr>().filter(|c| c.fun().name() == name);
        call.map(|c| c.args().to_vec())
    };
    let Some([mask]) = call(condition, "ragged_any").and_then(|a| <[_; 1]>::try_from(a).ok())
    else {
        return Ok(None);
    };
    let of = |name: &str| call(&mask, name).and_then(|a| <[_; 2]>::try_from(a).ok());
    let found = match (of("ragged_eq"), of("ragged_isin")) {
        (Some([a, b]), _) => find_literal_value(&a, &b, schema)
            .map(|v| (a.clone(), v))
            .or_else(|| find_literal_value(&b, &a, schema).map(|v| (b.clone(), v)))
            .map(|(list, v)| (array_has_udf(), list, v)),
        (_, Some([list, among])) => {
            collect_literals(&list, &among, schema).map(|v| (array_has_any_udf(), list, v))
        }
        _ => None,
    };
    let Some((function, list, literal)) = found else { return Ok(None) };
    let args = vec![list, Arc::new(Literal::new(literal)) as Arc<dyn PhysicalExpr>];
    let function: Arc<ScalarUDF> = function;
    let known = ScalarFunctionExpr::try_new(function, args, schema, Arc::new(config.clone()))?;
    Ok(Some(Arc::new(known)))
}

/// Returns the element type of a one-level list column if `ragged_any(x == v)` and `array_has(x,
/// v)` give the same result for elements of this type. Returns `None` for any other expression.
fn find_comparable_leaf(list: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<DataType> {
    let column = list.downcast_ref::<Column>()?;
    let data_type = schema.fields().get(column.index())?.data_type();
    let leaf = leaf_type(data_type);
    let plain = leaf.is_integer()
        || leaf.is_string()
        || matches!(leaf, DataType::Boolean | DataType::Date32);
    (list_depth(data_type) == 1 && plain).then(|| leaf.clone())
}

/// Casts a literal to a type. Returns `None` if the result is NULL or has another value, as for
/// 12.5 as an integer.
fn cast_literal(value: &ScalarValue, to: &DataType) -> Option<ScalarValue> {
    // An integer and a float are compared as floats, and several integers from 2^53 on equal the
    // same float. So a float from 2^53 on has no equivalent integer literal.
    if to.is_integer() && value.data_type().is_floating() {
        let wide = value.cast_to(&DataType::Float64).ok()?;
        if !matches!(wide, ScalarValue::Float64(Some(x)) if x.abs() < 2f64.powi(53)) {
            return None;
        }
    }
    let converted = value.cast_to(to).ok().filter(|v| !v.is_null())?;
    // A cast back reveals a loss, for example of 12.5 cast to an integer.
    (converted.cast_to(&value.data_type()).ok()? == *value).then_some(converted)
}

fn find_literal_value(
    list: &Arc<dyn PhysicalExpr>,
    value: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Option<ScalarValue> {
    cast_literal(value.downcast_ref::<Literal>()?.value(), &find_comparable_leaf(list, schema)?)
}

fn collect_literals(
    list: &Arc<dyn PhysicalExpr>,
    among: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Option<ScalarValue> {
    let ScalarValue::List(among) = among.downcast_ref::<Literal>()?.value() else { return None };
    let leaf = find_comparable_leaf(list, schema)?;
    if among.len() != 1 || among.is_null(0) {
        return None;
    }
    let values = among.value(0);
    let values = (0..values.len())
        .map(|i| cast_literal(&ScalarValue::try_from_array(&values, i).ok()?, &leaf))
        .collect::<Option<Vec<_>>>()?;
    (!values.is_empty()).then(|| ScalarValue::List(ScalarValue::new_list_nullable(&values, &leaf)))
}
