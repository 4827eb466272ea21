//! `ragged_map`: evaluates a lambda for each leaf (innermost value) of nested lists.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::array::{new_empty_array, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs,
    HigherOrderSignature, HigherOrderUDF, HigherOrderUDFImpl, LambdaParametersProgress,
    ValueOrLambda, Volatility,
};

use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::{NestedListType, broadcast_together, find_ancestors_of_leaves, take_rows_at};
use crate::array::{RaggedArray, leaf_type, list_depth};
use crate::error::Error;

pub(super) const NAME: &str = "ragged_map";

pub(super) static DOC: Doc = Doc {
    section: FunctionSection::Elementwise,
    description: "Evaluates an expression for each value, at any depth of lists: `lambda v: ..` or `v -> ..`. The expression runs once over all values of a batch, so it costs what it would cost on a column. It may use other columns of the row. Over several lists, it receives one value of each.",
    syntax: &[
        "ragged_map(x, lambda v: ..)",
        "ragged_map(x, y, lambda v, w: ..)",
        "ragged_map(x, v -> ..)",
    ],
    args: &[
        (
            "x, y, ..",
            "lists of any depth, at least one. They must have the same lengths on the levels that they share. If one has fewer levels, each of its values is combined with all values below its position",
        ),
        (
            "lambda",
            "the expression, with at most as many parameters as there are arguments before it",
        ),
    ],
    missing: "NULL lists stay NULL, and empty lists stay empty. The expression receives NULL values too. Aggregates, window functions and `IN (SELECT ..)` work on rows and are refused in it. (In DataFusion's `ctx.sql`, write `make_array(v, w)` for `[v, w]`.)",
    duckdb: "`list_transform(x, lambda v: ..)` for one level; for two `list_transform(x, lambda l: list_transform(l, lambda v: ..))`.",
    example: example!("ragged_map"),
};

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| DOC.to_documentation());

/// Builds `ragged_map`. `called` is the function that the statement calls: `ragged_map` itself, or
/// a scalar function that is applied to the values of lists.
pub(super) fn build_udf(called: &str) -> HigherOrderUDF {
    HigherOrderUDF::new_from_impl(RaggedMap {
        signature: HigherOrderSignature::variadic_any(Volatility::Immutable),
        called: called.to_owned(),
    })
}

struct RaggedMap {
    signature: HigherOrderSignature,
    /// The name of the function in errors.
    called: String,
}

impl fmt::Debug for RaggedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RaggedMap")
    }
}

/// Instances differ only in the name that errors show, so all of them are equal.
impl PartialEq for RaggedMap {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RaggedMap {}

impl Hash for RaggedMap {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}

fn split_arguments<V, L>(args: &[ValueOrLambda<V, L>]) -> Result<(Vec<&V>, &L)> {
    if let Some((ValueOrLambda::Lambda(lambda), before)) = args.split_last()
        && !before.is_empty()
    {
        let values = before.iter().map(|arg| match arg {
            ValueOrLambda::Value(v) => Some(v),
            ValueOrLambda::Lambda(_) => None,
        });
        if let Some(values) = values.collect::<Option<Vec<_>>>() {
            return Ok((values, lambda));
        }
    }
    plan_err!(
        "{NAME} takes one or more lists, followed by a lambda, but was called as {NAME}({}); write {}",
        args.iter()
            .map(|arg| match arg {
                ValueOrLambda::Value(_) => "value",
                ValueOrLambda::Lambda(_) => "lambda",
            })
            .collect::<Vec<_>>()
            .join(", "),
        DOC.syntax.join(" or ")
    )
}

fn find_deepest_lists(fields: &[&FieldRef]) -> Result<Option<NestedListType>> {
    if fields.iter().any(|f| f.data_type().is_null()) {
        return Ok(None);
    }
    for (i, f) in fields.iter().enumerate() {
        if matches!(f.data_type(), DataType::ListView(_) | DataType::LargeListView(_)) {
            return plan_err!(
                "{NAME}: argument {} is a {}, which is not supported; cast it to List or LargeList with arrow_cast first",
                i + 1,
                f.data_type()
            );
        }
    }
    let all: Vec<NestedListType> =
        fields.iter().map(|f| NestedListType::from_type(f.data_type())).collect();
    match all.iter().rev().max_by_key(|l| l.depth()) {
        Some(deep) if deep.depth() > 0 => {
            Ok(Some(all.iter().fold(deep.clone(), |deep, other| deep.widen_by(other))))
        }
        _ => plan_err!(
            "{NAME}: argument 1 must be a list (List, LargeList or FixedSizeList); it is {}",
            fields.first().map_or(&DataType::Null, |f| f.data_type())
        ),
    }
}

impl HigherOrderUDFImpl for RaggedMap {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let (lists, _) = split_arguments(fields)?;
        let leaf =
            |f: &&FieldRef| Arc::new(Field::new_list_field(leaf_type(f.data_type()).clone(), true));
        Ok(LambdaParametersProgress::Complete(vec![lists.iter().map(leaf).collect()]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        let (lists, value) = split_arguments(args.arg_fields)?;
        let returns = match find_deepest_lists(&lists)? {
            None => DataType::Null,
            Some(lists) => lists.make_plain_leaf(value.data_type().clone()),
        };
        Ok(Arc::new(Field::new(NAME, returns, true)))
    }

    fn clear_null_values(&self) -> bool {
        // DataFusion need not clear NULL lists: `RaggedArray` removes their values where necessary.
        false
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let returns = args.return_field.data_type();
        if returns.is_null() {
            return Ok(ColumnarValue::Array(new_null_array(returns, args.number_rows)));
        }
        let (values, lambda) = split_arguments(&args.args)?;
        let arrays = values
            .iter()
            .map(|v| {
                let levels = list_depth(&v.data_type());
                let array = v.to_array(args.number_rows)?;
                Ok(RaggedArray::try_from_arrow_levels(&array, levels)?)
            })
            .collect::<Result<Vec<_>>>()?;
        let together = broadcast_together(&arrays)
            .map_err(|e| Error::invalid(format!("{}: {e}", self.called)))?;
        let Some((shape, leaves)) = together else {
            return exec_err!(
                "{NAME} takes at least one list before the lambda, but none is given; write {NAME}(x, v -> v + 1)"
            );
        };
        let params: Vec<_> = leaves.iter().map(|l| || Ok(Arc::clone(l))).collect();
        let params: Vec<&dyn Fn() -> Result<arrow::array::ArrayRef>> =
            params.iter().map(|p| p as _).collect();
        // If there are no leaves, the lambda is not evaluated, because a constant in it, such as
        // `1 / 0`, could fail.
        let mapped = match args.arg_fields.last() {
            Some(ValueOrLambda::Lambda(value)) if shape.leaves().is_empty() => {
                new_empty_array(value.data_type())
            }
            _ => lambda
                .evaluate(&params, |columns| {
                    let rows = find_ancestors_of_leaves(shape.axes(), shape.len());
                    columns
                        .iter()
                        .map(|c| take_rows_at(c, &rows).map_err(DataFusionError::from))
                        .collect()
                })?
                .into_array(shape.leaves().len())?,
        };
        Ok(ColumnarValue::Array(shape.with_leaves(mapped)?.to_arrow_as(returns)?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}
