//! [`declare!`], [`same_field!`] and the evaluation of arguments, for functions that implement
//! `ScalarUDFImpl` themselves.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{exec_err, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::functions::{UDFCoercionExt, fields_with_udf};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use datafusion::scalar::ScalarValue;

/// Defines the methods `name`, `aliases` and `signature` of `ScalarUDFImpl`. They return constants.
///
/// `declare!("f", aliases: ["g"], signature);` defines all of them, `declare!(signature);` only
/// `signature`.
macro_rules! declare {
    ($name:expr, aliases: $aliases:expr, $signature:expr) => {
        fn aliases(&self) -> &[String] {
            static ALIASES: std::sync::LazyLock<Vec<String>> =
                std::sync::LazyLock::new(|| $aliases.map(str::to_owned).to_vec());
            &ALIASES
        }

        $crate::functions::declare!($name, $signature);
    };
    ($name:expr, $signature:expr) => {
        fn name(&self) -> &str {
            $name
        }

        $crate::functions::declare!($signature);
    };
    ($signature:expr) => {
        fn signature(&self) -> &datafusion::logical_expr::Signature {
            static SIGNATURE: std::sync::LazyLock<datafusion::logical_expr::Signature> =
                std::sync::LazyLock::new(|| $signature);
            &SIGNATURE
        }
    };
}
pub(crate) use declare;

/// Defines the methods `return_type` and `return_field_from_args` of a function whose result has
/// the type, nullability and metadata of its first argument. The result field is named after the
/// function and not after the argument, because DataFusion does not consider two calls equal if
/// the names of their result fields differ.
macro_rules! same_field {
    () => {
        fn return_type(
            &self,
            types: &[arrow::datatypes::DataType],
        ) -> datafusion::error::Result<arrow::datatypes::DataType> {
            $crate::functions::take_first(self.name(), types).cloned()
        }

        fn return_field_from_args(
            &self,
            args: datafusion::logical_expr::ReturnFieldArgs<'_>,
        ) -> datafusion::error::Result<arrow::datatypes::FieldRef> {
            let field = $crate::functions::take_first(self.name(), args.arg_fields)?;
            Ok(std::sync::Arc::new(field.as_ref().clone().with_name(self.name())))
        }
    };
}
pub(crate) use same_field;

pub(crate) fn coerce_arguments<F: UDFCoercionExt>(
    function: &F,
    types: &[DataType],
) -> Result<Vec<DataType>> {
    let field = |t: &DataType| Arc::new(Field::new("argument", t.clone(), true));
    let fields: Vec<FieldRef> = types.iter().map(field).collect();
    let fields = fields_with_udf(&fields, function)?;
    Ok(fields.iter().map(|field| field.data_type().clone()).collect())
}

/// Calls `compute` with the arguments of a function as arrays. If all are scalars, the arrays have
/// one row, and the result is a scalar.
pub(crate) fn call_on_arrays<const N: usize>(
    name: &str,
    args: &ScalarFunctionArgs,
    compute: impl FnOnce([ArrayRef; N]) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let (is_one, rows) = count_call_rows(args);
    let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let Ok(arrays) = <[ArrayRef; N]>::try_from(arrays) else {
        return exec_err!(
            "internal error: {name} has {} arguments instead of {N}; please report it",
            args.args.len()
        );
    };
    to_columnar(compute(arrays)?, is_one)
}

pub(crate) fn are_scalars(args: &[ColumnarValue]) -> bool {
    args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)))
}

/// Returns whether all arguments of a call are scalars, and the number of rows to compute, which is
/// then 1. [`to_columnar`] converts the computed rows.
pub(crate) fn count_call_rows(args: &ScalarFunctionArgs) -> (bool, usize) {
    let is_one = are_scalars(&args.args);
    (is_one, if is_one { 1 } else { args.number_rows })
}

/// Returns the result `found` of a function as an array or, if `is_one`, its only row as a scalar.
pub(crate) fn to_columnar(found: ArrayRef, is_one: bool) -> Result<ColumnarValue> {
    Ok(match is_one {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
        false => ColumnarValue::Array(found),
    })
}

/// Returns the first of `args`: the arguments of the function `name`, or the types or fields of its
/// arguments. Returns an error if `args` is empty.
pub(crate) fn take_first<T>(name: &str, args: impl IntoIterator<Item = T>) -> Result<T> {
    args.into_iter().next().ok_or_else(|| {
        internal_datafusion_err!("internal error: {name} has no argument; please report it")
    })
}
