//! Functions by which `GROUP BY` a list groups by the bytes of the list.
//!
//! DataFusion groups by rows in the row format of Arrow, in which a list takes more than twice its
//! size. When the groups are spilled or returned, it converts all rows to lists at once. It counts
//! neither these lists nor the memory of the conversion, so `GROUP BY` a list takes several times
//! the memory limit. Binary keys take their size, and are returned without a copy.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use serrate_core::internal::{decode_lists, encode_lists};

use super::{call_on_arrays, declare, take_first};

/// Metadata key of a column with the bytes of lists. Such a column is as large as the lists, so
/// batches with it have few rows, like batches with lists.
pub(crate) const LIST_KEY: &str = "serrate.list_key";

static LIST_TO_KEY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(ListToKey)));

static KEY_TO_LIST: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(KeyToList)));

/// Returns the functions that plans with list keys call.
#[cfg(feature = "cluster")]
pub(crate) fn list_key_functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::clone(&LIST_TO_KEY), Arc::clone(&KEY_TO_LIST)]
}

/// Returns a call that computes the bytes of a list.
pub(crate) fn make_list_key(list: Expr) -> Expr {
    LIST_TO_KEY.call(vec![list])
}

/// Returns a call that computes the list of type `data_type` from its bytes.
pub(crate) fn restore_list(key: Expr, data_type: &DataType) -> Result<Expr> {
    let typed = Expr::Literal(ScalarValue::try_from(data_type)?, None);
    Ok(KEY_TO_LIST.call(vec![key, typed]))
}

/// `list_to_key(x)`: returns the bytes of a list, which are equal for equal lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ListToKey;

impl ScalarUDFImpl for ListToKey {
    declare!("list_to_key", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeBinary)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let list = take_first(self.name(), args.arg_fields)?;
        let metadata = HashMap::from([(LIST_KEY.to_owned(), String::new())]);
        // The bytes of a NULL list are not NULL, but the field says whether the list may be NULL.
        let field = Field::new(self.name(), DataType::LargeBinary, list.is_nullable());
        Ok(Arc::new(field.with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[lists]| {
            let keys: ArrayRef = Arc::new(encode_lists(&lists)?);
            Ok(keys)
        })
    }
}

/// `key_to_list(key, NULL)`: returns the list with the bytes `key`. The type of the list is that of
/// the second argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyToList;

impl ScalarUDFImpl for KeyToList {
    declare!("key_to_list", Signature::any(2, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types.iter().skip(1)).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let key = take_first(self.name(), args.arg_fields)?;
        let typed = take_first(self.name(), args.arg_fields.iter().skip(1))?;
        let data_type = typed.data_type().clone();
        Ok(Arc::new(Field::new(self.name(), data_type, key.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let keys = take_first(self.name(), &args.args)?.to_array(args.number_rows)?;
        let Some(keys) = keys.as_binary_opt::<i64>() else {
            return exec_err!(
                "internal error: {} of {} instead of the bytes of lists; please report it",
                self.name(),
                keys.data_type()
            );
        };
        Ok(ColumnarValue::Array(decode_lists(keys, args.return_field.data_type())?))
    }
}
