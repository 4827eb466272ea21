//! [`remove_tag`]: values without the extension type of their column, and without the identity of
//! the vocabulary of their tokens. [`tag_tokens`]: tokens with this identity.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use super::def::remove_extension;
use super::{declare, take_first};
use crate::io::meds::VOCABULARY_METADATA;

/// The value of [`VOCABULARY_METADATA`] for a column with tokens of several vocabularies. It is the
/// identity of no vocabulary, so `ragged_decode` rejects such a column.
pub(crate) const SEVERAL_VOCABULARIES: &str = "several";

static UNTAGGED: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(UntaggedFunction)));

static TAGGED: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(TaggedTokens)));

const TAGGED_TOKENS: &str = "tagged_tokens";

/// Removes the extension type from a field, and marks tokens as those of several vocabularies.
pub(crate) fn untag_field(field: Field) -> Field {
    let mut field = remove_extension(field);
    if let Some(vocabulary) = field.metadata_mut().get_mut(VOCABULARY_METADATA) {
        SEVERAL_VOCABULARIES.clone_into(vocabulary);
    }
    field
}

/// Whether the tokens of two fields are of different vocabularies. False if the vocabulary of one
/// field is unknown.
pub(crate) fn differ_in_vocabulary(a: &Field, b: &Field) -> bool {
    let [a, b] = [a, b].map(|field| field.metadata().get(VOCABULARY_METADATA));
    a.is_some_and(|a| b.is_some_and(|b| a != b))
}

/// Returns `merged`, the field of a column with the values of `a` and `b`, with the tags of such a
/// column: no extension type if theirs differ, such as tensors of different shapes, and the
/// vocabulary that one of them names, or [`SEVERAL_VOCABULARIES`] if they name two.
pub(crate) fn merge_tags(merged: FieldRef, a: &Field, b: &Field) -> FieldRef {
    let is_tagged = a.extension_type_name() == b.extension_type_name()
        && a.extension_type_metadata() == b.extension_type_metadata();
    let [first, second] = [a, b].map(|field| field.metadata().get(VOCABULARY_METADATA));
    let vocabulary = match differ_in_vocabulary(a, b) {
        true => Some(SEVERAL_VOCABULARIES),
        false => first.or(second).map(String::as_str),
    };
    let named = merged.metadata().get(VOCABULARY_METADATA).map(String::as_str);
    if is_tagged && named == vocabulary {
        return merged;
    }
    let mut field = merged.as_ref().clone();
    if !is_tagged {
        field = remove_extension(field);
    }
    if let Some(vocabulary) = vocabulary {
        field.metadata_mut().insert(VOCABULARY_METADATA.to_owned(), vocabulary.to_owned());
    }
    Arc::new(field)
}

/// Wraps `e` in a call of a function that returns the same values with the tags of [`untag_field`].
/// The optimizer would remove a cast to the type that the values have.
pub(crate) fn remove_tag(e: Expr) -> Expr {
    UNTAGGED.call(vec![e])
}

/// Wraps `e` in a call of a function that returns the same values as tokens of `vocabulary`.
pub(crate) fn tag_tokens(e: Expr, vocabulary: &str) -> Expr {
    TAGGED.call(vec![e, lit(vocabulary)])
}

/// Whether [`tag_tokens`] returned the call.
pub(crate) fn are_tagged_tokens(call: &ScalarFunction) -> bool {
    call.func.name() == TAGGED_TOKENS
}

/// Returns the functions that [`remove_tag`] and [`tag_tokens`] call, so that workers can decode
/// plans that call them.
#[cfg(feature = "cluster")]
pub(crate) fn list_tag_functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::clone(&UNTAGGED), Arc::clone(&TAGGED)]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UntaggedFunction;

impl ScalarUDFImpl for UntaggedFunction {
    declare!("untagged", Signature::any(1, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = take_first(self.name(), args.arg_fields)?;
        Ok(Arc::new(untag_field(of.as_ref().clone().with_name(self.name()))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TaggedTokens;

impl ScalarUDFImpl for TaggedTokens {
    declare!(TAGGED_TOKENS, Signature::any(2, Volatility::Immutable));

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        take_first(self.name(), types).cloned()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = take_first(self.name(), args.arg_fields)?;
        let mut field = of.as_ref().clone().with_name(self.name());
        let vocabulary = args.scalar_arguments.get(1).copied().flatten();
        if let Some(vocabulary) = vocabulary.and_then(|value| value.try_as_str().flatten()) {
            let (key, id) = (VOCABULARY_METADATA.to_owned(), vocabulary.to_owned());
            field.metadata_mut().insert(key, id);
        }
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        take_first(self.name(), args.args)
    }
}
