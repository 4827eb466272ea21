//! Columns whose values are in the names of folders: `year=2020/month=1/a.parquet`.

use std::borrow::Cow;

use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use percent_encoding::percent_decode_str;

use crate::sql::sources::listing::files::ListedFile;
use crate::sql::sources::urls::shown_location;

/// Value in the name of a folder that stands for NULL, as Hive, Spark, pyarrow and DuckDB write it.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the type of columns in folder names if the table does not declare it.
pub(in crate::sql) fn folder_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8))
}

/// Returns the names in `name=value` of the folders of all files.
///
/// # Errors
/// If the files are in folders of different names, or a name appears twice in a path.
pub(in crate::sql) fn infer_names(files: &[ListedFile]) -> Result<Vec<String>> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    let names = names_of(first);
    if let Some(other) = files.iter().find(|file| names_of(file) != names) {
        return plan_err!(
            "{} and {} are in folders of different columns (name=value); files of one table must be in folders of the same columns",
            shown_location(&first.meta.location),
            shown_location(&other.meta.location)
        );
    }
    let repeated = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    match repeated {
        None => Ok(names.into_iter().map(str::to_owned).collect()),
        Some((_, name)) => plan_err!(
            "{} is in two folders '{name}=..'; a column must appear once in a path",
            shown_location(&first.meta.location)
        ),
    }
}

fn names_of(file: &ListedFile) -> Vec<&str> {
    file.folders.iter().filter_map(|folder| Some(folder.split_once('=')?.0)).collect()
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
    let Some((_, value)) = pairs.find(|(key, _)| *key == name) else {
        return plan_err!(
            "{} is not in a folder '{name}=..', but the table takes the column '{name}' from folder names; move the file into such a folder",
            shown_location(&file.meta.location)
        );
    };
    if value == NULL_FOLDER {
        return ScalarValue::try_from(data_type);
    }
    // A value that is not UTF-8 after percent-decoding stays encoded.
    let text = percent_decode_str(value).decode_utf8().unwrap_or(Cow::Borrowed(value));
    ScalarValue::try_from_string(text.clone().into_owned(), data_type).map_err(|_| {
        plan_datafusion_err!(
            "{}: the folder '{name}={value}' has no value of {data_type}, the type of column '{name}'; declare the column as VARCHAR, or rename the folder",
            shown_location(&file.meta.location)
        )
    })
}
