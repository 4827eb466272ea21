//! Partition columns, whose values are in the names of folders: `year=2020/month=1/a.parquet`.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use percent_encoding::percent_decode_str;

use crate::sql::sources::exact_casts::convert_exact;
use crate::sql::sources::exact_texts::TextRules;
use crate::sql::sources::listing::files::ListedFile;
use crate::sql::sources::partition_folders::NULL_NAME;
use crate::sql::sources::urls::format_location;

/// Returns the type of a partition column that the table and the files do not declare. DataFusion
/// uses a dictionary with UInt16 keys, but a table may have more than 65,536 folders.
fn make_folder_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

/// Returns the columns in files, and the partition columns with their types. A partition column
/// replaces a column of the same name in the files, as in DuckDB, and takes its type.
pub(in crate::sql) fn split_folders(
    schema: &Schema,
    names: Vec<String>,
) -> (SchemaRef, Vec<(String, DataType)>) {
    let in_folders = |field: &&FieldRef| names.contains(field.name());
    let fields: Vec<FieldRef> =
        schema.fields().iter().filter(|field| !in_folders(field)).cloned().collect();
    let in_files = Schema::new_with_metadata(fields, schema.metadata().clone());
    let typed = names.into_iter().map(|name| {
        let in_files = schema.field_with_name(&name).ok();
        let data_type = in_files.map_or_else(make_folder_type, |field| field.data_type().clone());
        (name, data_type)
    });
    let folders = typed.collect();
    (Arc::new(in_files), folders)
}

/// Returns the names of the partition columns, outermost first: the `name` of each folder
/// `name=value`.
///
/// # Errors
/// If the files do not all have the same partition columns, or a name appears twice in a path.
pub(in crate::sql) fn infer_names(files: &[ListedFile]) -> Result<Vec<String>> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    let names = list_folder_names(first);
    if let Some(other) = files.iter().find(|file| list_folder_names(file) != names) {
        return plan_err!(
            "{} and {} are in folders (name=value) of different columns: {names:?} and {:?}; move all files of a table into folders of the same columns",
            format_location(&first.meta.location),
            format_location(&other.meta.location),
            list_folder_names(other)
        );
    }
    let repeated = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    match repeated {
        None => Ok(names.into_iter().map(Cow::into_owned).collect()),
        Some((_, name)) => plan_err!(
            "{} is in two folders '{name}=..', but a path must have only one folder per column; rename one of the two folders",
            format_location(&first.meta.location)
        ),
    }
}

fn list_folder_names(file: &ListedFile) -> Vec<Cow<'_, str>> {
    file.folders.iter().filter_map(|folder| Some(decode_name(folder.split_once('=')?.0))).collect()
}

/// Decodes a percent-encoded name or value, or returns it unchanged if the result is not UTF-8.
fn decode_name(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}

/// Returns the values of `columns` in the folder names of a file's path. Other folders are ignored.
///
/// # Errors
/// If no folder has the name of a column, or if its value cannot be cast to the column's type.
pub(super) fn find_values(
    file: &ListedFile,
    columns: &[(String, DataType)],
) -> Result<Vec<ScalarValue>> {
    columns.iter().map(|(name, data_type)| find_value(file, name, data_type)).collect()
}

fn find_value(file: &ListedFile, name: &str, data_type: &DataType) -> Result<ScalarValue> {
    let mut pairs = file.folders.iter().filter_map(|folder| folder.split_once('='));
    let Some((_, value)) = pairs.find(|(key, _)| decode_name(key) == name) else {
        return plan_err!(
            "{} is not in a folder '{name}=..', but the table takes the column '{name}' from folder names; move the file into such a folder",
            format_location(&file.meta.location)
        );
    };
    if value == NULL_NAME {
        return ScalarValue::try_from(data_type);
    }
    let text: ArrayRef = Arc::new(StringArray::from(vec![decode_name(value).into_owned()]));
    let found = convert_exact(&text, data_type, TextRules::default()).ok();
    let found = found.and_then(|found| ScalarValue::try_from_array(&found, 0).ok());
    found.ok_or_else(|| {
        plan_datafusion_err!(
            "{}: the value in the folder name '{name}={value}' cannot be cast to {data_type}, the type of the column '{name}'; declare the column as VARCHAR, or rename the folder",
            format_location(&file.meta.location)
        )
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;

    use super::*;

    #[test]
    fn a_column_has_more_than_65_536_folders() {
        let value = |k: usize| {
            let text: ArrayRef = Arc::new(StringArray::from(vec![k.to_string()]));
            let keyed = convert_exact(&text, &make_folder_type(), TextRules::default()).unwrap();
            ScalarValue::try_from_array(&keyed, 0).unwrap()
        };
        let values = ScalarValue::iter_to_array((0..65_540).map(value)).unwrap();
        assert_eq!((values.len(), values.data_type()), (65_540, &make_folder_type()));
    }
}
