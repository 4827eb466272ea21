//! Derives one schema for files in which the types of a column differ in width.

use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use serrate_core::internal::cast_strictly;

use crate::array::{leaf_type, list_depth, list_of};
use crate::kernels::nan::nan_to_null;
use crate::sql::sources::exact_casts::{InexactConversion, convert_exact, holds_all};
use crate::sql::sources::exact_texts::TextRules;

/// Returns the schema of a table over several files, each given with its name: the columns of all
/// files, in order of first appearance, with types wide enough for every file. Returns an error if
/// no type holds the values of a column in two files.
pub(super) fn unify_schemas<'a>(
    files: impl IntoIterator<Item = (&'a Path, SchemaRef)>,
) -> Result<SchemaRef> {
    let mut fields: Vec<(FieldRef, &Path)> = Vec::new();
    for (path, schema) in files {
        for field in schema.fields() {
            let known = fields.iter_mut().find(|(f, _)| f.name() == field.name());
            match known {
                None => fields.push((Arc::clone(field), path)),
                Some((f, _)) if f.data_type() == field.data_type() => {}
                Some((f, first)) => {
                    let wide = widen_lists(f.data_type(), field.data_type()).ok_or_else(|| {
                        DataFusionError::Plan(format!(
                            "column {column:?} is {first_type} in {first_file} but {other_type} in {other_file}, and no type \
                             holds the values of both; write the column with one type, or read the files as separate tables",
                            column = f.name(),
                            first_type = f.data_type(),
                            first_file = first.display(),
                            other_type = field.data_type(),
                            other_file = path.display()
                        ))
                    })?;
                    *f = Arc::new(Field::new(f.name(), wide, true));
                }
            }
        }
    }
    Ok(Arc::new(Schema::new(fields.into_iter().map(|(f, _)| f).collect::<Vec<_>>())))
}

fn widen_lists(a: &DataType, b: &DataType) -> Option<DataType> {
    let depth = list_depth(a);
    (depth == list_depth(b))
        .then(|| widen_type(leaf_type(a), leaf_type(b)))
        .flatten()
        .map(|leaf| list_of(depth, leaf))
}

/// Returns the narrowest type that holds the values of both types, by numpy's promotion, or `None`
/// if there is none.
fn widen_type(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Boolean, Float16, Float32, Float64, Int16, Int32, Int64};
    if a == b {
        return Some(a.clone());
    }
    let width = |t: &DataType| t.primitive_width();
    match (a, b) {
        (Boolean, other) | (other, Boolean) => other.is_numeric().then(|| other.clone()),
        (a, b) if a.is_floating() && b.is_floating() => {
            Some(if width(a) >= width(b) { a.clone() } else { b.clone() })
        }
        (f, i) | (i, f) if f.is_floating() && i.is_integer() => {
            let needed = match width(i)? {
                1 => Float16,
                2 => Float32,
                _ => Float64,
            };
            Some(if width(f) >= width(&needed) { f.clone() } else { needed })
        }
        (a, b) if a.is_integer() && b.is_integer() => {
            if a.is_signed_integer() == b.is_signed_integer() {
                return Some(if width(a) >= width(b) { a.clone() } else { b.clone() });
            }
            let (signed, unsigned) = if a.is_signed_integer() { (a, b) } else { (b, a) };
            let holds_unsigned = match width(unsigned)? {
                1 => Int16,
                2 => Int32,
                4 => Int64,
                _ => return Some(Float64),
            };
            Some(if width(signed) >= width(&holds_unsigned) {
                signed.clone()
            } else {
                holds_unsigned
            })
        }
        _ => None,
    }
}

/// Returns the flat values of a column in the table's type, with NaN as NULL if requested.
///
/// # Errors
/// If the table's type cannot hold a value: a fraction in a column of integers, a large integer in
/// one of floats, and a number out of range.
pub(super) fn cast_leaves(
    values: &ArrayRef,
    target: &DataType,
    nan_is_null: bool,
    column: &str,
    file: &Path,
) -> Result<ArrayRef> {
    let values = if nan_is_null { nan_to_null(values)? } else { Arc::clone(values) };
    // No value needs a check, which costs several times the cast.
    if values.data_type() != target && holds_all(values.data_type(), target) {
        return Ok(cast_strictly(&values, target)?);
    }
    convert_exact(&values, target, TextRules::default()).map_err(|inexact| {
        let file = file.display();
        match inexact {
            InexactConversion::Value { text, .. } => exec_datafusion_err!(
                "{file}: the column '{column}' has the type {target} in the table, which cannot hold '{text}'; declare another type in CREATE EXTERNAL TABLE, or read the file as a separate table"
            ),
            InexactConversion::Failed(e) => exec_datafusion_err!(
                "{file}: the column '{column}' cannot be read as {target}; declare another type in CREATE EXTERNAL TABLE: {e}"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float32Array};

    use super::*;
    use DataType::{Boolean, Float16, Float32, Float64, Int8, Int16, Int64, UInt8, UInt16, UInt64};

    #[test]
    fn types_widen_as_numpy_promotes() {
        let cases = [
            (UInt8, UInt16, Some(UInt16)),
            (UInt8, Int8, Some(Int16)),
            (UInt64, Int8, Some(Float64)),
            (Int64, Float32, Some(Float64)),
            (UInt16, Float32, Some(Float32)),
            (UInt16, Float16, Some(Float32)),
            (Boolean, UInt8, Some(UInt8)),
            (DataType::Utf8, UInt8, None),
        ];
        for (a, b, expected) in cases {
            assert_eq!(widen_type(&a, &b), expected, "{a} {b}");
            assert_eq!(widen_type(&b, &a), expected, "{b} {a}");
        }
    }

    #[test]
    fn nan_becomes_null_and_the_values_stay_where_they_are() {
        let values = Float32Array::from(vec![1.0, f32::NAN, 3.0]);
        let at = values.values().as_ptr();
        let values: ArrayRef = Arc::new(values);
        let out = cast_leaves(&values, &Float32, true, "x", Path::new("a.nrt")).unwrap();
        assert_eq!(out.null_count(), 1);
        assert!(out.is_null(1));
        let out = out.as_any().downcast_ref::<Float32Array>().unwrap();
        assert_eq!(out.values().as_ptr(), at);
    }

    #[test]
    fn a_column_on_two_axes_names_both_files() {
        let schema =
            |levels| Arc::new(Schema::new(vec![Field::new("code", list_of(levels, UInt8), true)]));
        let files = [(Path::new("a.nrt"), schema(1)), (Path::new("b.nrt"), schema(2))];
        let message = unify_schemas(files).unwrap_err().to_string();
        assert!(message.contains("a.nrt") && message.contains("b.nrt"), "{message}");
        assert!(message.contains("code"), "{message}");
    }
}
