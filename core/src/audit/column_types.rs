use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow::datatypes::{DataType, TimeUnit};

use super::AuditLog;
use crate::array::nested_types::is_string_like;
use crate::error::Result;
use crate::io::meds::file::MedsFile;
use crate::io::meds::plain_types::unify_types;

#[derive(Debug)]
struct TypeVariant {
    stored: DataType,
    /// Arrow type of the column in the first of `files`. In the other files, the column has this
    /// type, or a type that [`unify_types`] can unify with this type.
    read: DataType,
    files: Vec<PathBuf>,
}

/// Types of each column in the files added so far. Arrow types that Parquet stores alike (`string`,
/// `large_string`) count as one type, unless [`unify_types`] finds no common type.
#[derive(Debug, Default)]
pub(super) struct ColumnTypes {
    columns: BTreeMap<String, Vec<TypeVariant>>,
}

impl ColumnTypes {
    /// Adds the types of the columns of a file. Skips the columns `refused`, because a fault of
    /// their types is already reported.
    pub(super) fn add(&mut self, source: &MedsFile, refused: &[&str]) -> Result<()> {
        for (name, stored) in source.read_stored_types()? {
            let Ok(field) = source.schema().field_with_name(&name) else { continue };
            if refused.contains(&name.as_str()) {
                continue;
            }
            let variants = self.columns.entry(name).or_default();
            let read = field.data_type();
            let same =
                |v: &&mut TypeVariant| v.stored == stored && unify_types(&v.read, read).is_some();
            match variants.iter_mut().find(same) {
                Some(variant) => variant.files.push(source.path().to_path_buf()),
                None => variants.push(TypeVariant {
                    stored,
                    read: read.clone(),
                    files: vec![source.path().to_path_buf()],
                }),
            }
        }
        Ok(())
    }

    /// Reports each file in which a column has another type than expected. If `meds` is true, the
    /// MEDS standard determines the expected type; otherwise, the first file does.
    pub(super) fn report_findings(self, meds: bool, log: &mut AuditLog) {
        for (name, variants) in self.columns {
            let due = find_meds_type(&name).filter(|_| meds);
            let [first, rest @ ..] = variants.as_slice() else { continue };
            let position = || format!("column {name:?}");
            if rest.is_empty() {
                if let (Some(due), Some(file)) =
                    (due.filter(|d| *d != first.stored), first.files.first())
                {
                    let count = u64::try_from(first.files.len()).unwrap_or(u64::MAX);
                    let expected = format!("{due}, as MEDS prescribes");
                    let found = (position(), first.stored.to_string(), expected);
                    log.add_many_about(&name, count, "meds-types", file, found);
                }
                continue;
            }
            // If no file has the type that MEDS prescribes, the type of the first file is expected,
            // so that only differences between the files are reported.
            let due = due.filter(|due| variants.iter().any(|v| v.stored == *due));
            let right = due.as_ref().unwrap_or(&first.stored);
            let model = variants.iter().find(|v| v.stored == *right).unwrap_or(first);
            let example = model.files.first().map(|f| f.display().to_string()).unwrap_or_default();
            for variant in variants.iter().filter(|v| !std::ptr::eq(*v, model)) {
                // Name the Parquet types in the finding, or the Arrow types if the Parquet types
                // are equal.
                let (found, expected) = match variant.stored == model.stored {
                    true => (&variant.read, &model.read),
                    false => (&variant.stored, &model.stored),
                };
                for file in &variant.files {
                    let expected = format!("{expected} as in {example}");
                    log.add_finding_about(
                        &name,
                        "types",
                        file,
                        position,
                        found.to_string(),
                        expected,
                    );
                }
            }
        }
    }
}

fn find_meds_type(name: &str) -> Option<DataType> {
    Some(match name {
        "subject_id" => DataType::Int64,
        "time" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "code" | "text_value" => DataType::Utf8,
        "numeric_value" => DataType::Float32,
        _ => return None,
    })
}

/// Returns the expected type of column `name` if the audit refuses the type `found`, else `None`.
pub(super) fn refuse_type(name: &str, found: &DataType) -> Option<&'static str> {
    use DataType::{Date32, Date64, Null, Timestamp};
    let (fits, expected) = match name {
        "subject_id" => (found.is_integer(), "Int64"),
        "time" => (matches!(found, Timestamp(_, _) | Date32 | Date64 | Null), "Timestamp(µs)"),
        "code" => (is_string_like(found), "Utf8"),
        "numeric_value" => (found.is_numeric() || *found == Null, "Float32"),
        _ => (true, ""),
    };
    (!fits).then_some(expected)
}
