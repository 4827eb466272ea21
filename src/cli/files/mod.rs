//! Input and output files and folders of any format, as batches of rows.

mod batch_source;
mod declare;
mod file_sink;
mod meds;
mod new_folders;

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use clap::ValueEnum;
use serrate_core::internal::{build_record_batch, cast_strictly};

use super::command_failure::{Failure, Outcome};
use crate::access;
use crate::array::list_kind;
use crate::table::promote_types;

pub(super) use batch_source::{InputShard, InputSource, is_meds_root};
pub(super) use declare::DeclaredTypes;
pub(super) use file_sink::{OutputFile, SinkOptions, describe_times};
pub(super) use meds::{MedsPart, describe_losses};
pub(super) use new_folders::NewFolders;

/// The tables in a folder that `serrate features` writes.
pub(super) const FEATURE_FILES: [&str; 3] =
    ["values.parquet", "features.parquet", "labels.parquet"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(super) enum FileFormat {
    /// Ragged tensors of Python's nested_ragged_tensors.
    Nrt,
    /// Parquet with list columns.
    Parquet,
    /// Arrow IPC file.
    #[value(alias = "ipc", alias = "feather")]
    Arrow,
    /// One JSON document: a list of records, or an object of columns.
    Json,
    /// One JSON record per line.
    #[value(alias = "jsonl")]
    Ndjson,
    /// Dense tensors with masks (written only).
    Safetensors,
    /// A MEDS folder: data/**/*.parquet, one row per measurement.
    Meds,
    /// A tensorized cohort for meds-torch-data's MEDSPytorchDataset (from MEDS folders).
    #[value(alias = "meds_torch_data", alias = "mtd")]
    MedsTorchData,
}

impl FileFormat {
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "nrt" => Self::Nrt,
            "parquet" => Self::Parquet,
            "arrow" | "ipc" | "feather" | "arrows" => Self::Arrow,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "safetensors" => Self::Safetensors,
            _ => return None,
        })
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Nrt | Self::MedsTorchData => "nrt",
            Self::Parquet | Self::Meds => "parquet",
            Self::Arrow => "arrow",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Safetensors => "safetensors",
        }
    }

    /// Whether this format distinguishes missing numbers from NaN.
    pub(super) fn has_nulls(self) -> bool {
        !matches!(self, Self::Nrt | Self::Safetensors)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Meds => "MEDS",
            Self::MedsTorchData => "meds-torch-data",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow IPC",
            Self::Json => "JSON",
            Self::Ndjson => "NDJSON",
            Self::Nrt => "nrt",
            Self::Safetensors => "safetensors",
        }
    }
}

/// Returns an error if the extension of the output contradicts its format `of`: `x.parquet` for the
/// format Arrow. For a folder, `of` is `None`, and the extension of any file format is an error.
/// `what` says in the message what the output will contain.
pub(super) fn check_name(output: &Path, of: Option<FileFormat>, what: &str) -> Outcome {
    let Some(extension) = output.extension().map(|e| e.to_string_lossy().to_ascii_lowercase())
    else {
        return Ok(());
    };
    let other = match FileFormat::from_path(output) {
        Some(format) => Some(format) != of,
        None => OTHERS.contains(&extension.as_str()),
    };
    // A folder that already exists is accepted even if it is called `x.parquet`.
    if !other || (of.is_none() && access::is_dir(output)) {
        return Ok(());
    }
    Err(Failure::from_usage(match of {
        Some(format) => format!(
            "{} will contain {what}, but its name ends in .{extension}; use the extension .{}",
            output.display(),
            format.extension()
        ),
        None => format!(
            "{} will contain {what}, but its name ends in .{extension}; use a name without an extension",
            output.display()
        ),
    }))
}

/// Returns an error if `output` exists, unless `overwrite` is set.
pub(super) fn check_absent(output: &Path, overwrite: bool) -> Outcome {
    match !overwrite && access::exists(output) {
        true => Err(Failure::from_message(format!(
            "{} exists; use --overwrite to replace it",
            output.display()
        ))),
        false => Ok(()),
    }
}

/// Extensions of file formats that Serrate never writes. [`check_name`] refuses them, so that no
/// output has, for example, the name `x.npz` and another format.
const OTHERS: [&str; 16] = [
    "npz", "npy", "pt", "pth", "bin", "pkl", "pickle", "h5", "hdf5", "zarr", "csv", "txt", "zip",
    "tar", "gz", "zst",
];

/// Returns the file format that the extension of `path` names. Any other extension is an error that
/// lists the known ones.
pub(super) fn find_format(path: &Path) -> Outcome<FileFormat> {
    FileFormat::from_path(path).ok_or_else(|| {
        Failure::from_message(format!(
            "{}: the name has no known extension; expected .nrt, .parquet, .arrow (.ipc, .feather), .json, .ndjson (.jsonl) or .safetensors",
            path.display()
        ))
    })
}

/// Returns a schema to which the rows of both `a` and `b` can be cast: int64 for int32 and int64,
/// and `List` or `LargeList` for lists of different Arrow types. `a` is the schema of the earlier
/// files, and `b` is the schema of the file `b_is`. Returns an error if the files do not have the
/// same columns, or if two types have no common type.
pub(super) fn unify_schemas(a: &Schema, b: &Schema, b_is: &Path) -> Outcome<SchemaRef> {
    let wrong = |message: String| Failure::from_message(format!("{}: {message}", b_is.display()));
    if a.fields().len() != b.fields().len() {
        let names = |s: &Schema| s.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
        return Err(wrong(format!(
            "this file has the columns {}, but the earlier files have {}; give files with the same columns",
            names(b).join(", "),
            names(a).join(", ")
        )));
    }
    let fields = a
        .fields()
        .iter()
        .map(|left| {
            let right = b.field_with_name(left.name()).map_err(|_| {
                wrong(format!(
                    "this file lacks the column {:?} of the earlier files; give files with the same columns",
                    left.name()
                ))
            })?;
            let data_type = unify_types(left.data_type(), right.data_type()).ok_or_else(|| {
                wrong(format!(
                    "column {:?} has type {}, but {} in the earlier files; convert the files to one type first",
                    left.name(),
                    right.data_type(),
                    left.data_type()
                ))
            })?;
            let nullable = left.is_nullable() || right.is_nullable();
            let field = left.as_ref().clone().with_data_type(data_type).with_nullable(nullable);
            Ok(FieldRef::from(field))
        })
        .collect::<Outcome<Vec<FieldRef>>>()?;
    Ok(Schema::new_with_metadata(fields, a.metadata().clone()).into())
}

fn unify_types(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(a.clone());
    }
    match (list_kind(a), list_kind(b)) {
        (Some((_, x)), Some((_, y))) => {
            let item = unify_types(x.data_type(), y.data_type())?;
            let item = Field::new_list_field(item, true).into();
            Some(match (a, b) {
                (DataType::LargeList(_), _) | (_, DataType::LargeList(_)) => {
                    DataType::LargeList(item)
                }
                _ => DataType::List(item),
            })
        }
        (None, None) => promote_types(a, b),
        // Only one of the types is a list, and the other type is Null. A column of Nulls can be
        // cast to lists of any depth.
        (Some(_), None) if b.is_null() => Some(a.clone()),
        (None, Some(_)) if a.is_null() => Some(b.clone()),
        _ => None,
    }
}

pub(super) fn conform_batch(batch: &RecordBatch, schema: &SchemaRef) -> Outcome<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let column = batch.column_by_name(field.name()).ok_or_else(|| {
                let found = batch.schema_ref().fields().iter().map(|f| f.name().as_str());
                Failure::from_message(format!(
                    "column {:?} is missing from a file, which has the columns {}; give files with the same columns",
                    field.name(),
                    found.collect::<Vec<_>>().join(", ")
                ))
            })?;
            Ok(match column.data_type() == field.data_type() {
                true => column.clone(),
                false => cast_strictly(column, field.data_type())?,
            })
        })
        .collect::<Outcome<Vec<_>>>()?;
    Ok(build_record_batch(schema.clone(), columns, batch.num_rows())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::list_of;

    #[test]
    fn types_of_shards_widen() {
        use DataType::{Int8, Int16, LargeList, List, Null, UInt8, Utf8};
        let item = |t| Field::new_list_field(t, true).into();
        assert_eq!(unify_types(&list_of(2, UInt8), &list_of(2, Int8)), Some(list_of(2, Int16)));
        assert_eq!(
            unify_types(&LargeList(item(UInt8)), &List(item(UInt8))),
            Some(LargeList(item(UInt8)))
        );
        assert_eq!(unify_types(&list_of(1, UInt8), &Null), Some(list_of(1, UInt8)));
        assert_eq!(unify_types(&list_of(1, UInt8), &UInt8), None);
        assert_eq!(unify_types(&Utf8, &UInt8), None);
    }
}
