//! Creates tables for `CREATE EXTERNAL TABLE .. STORED AS DOK`: sparse tensors and dictionaries.

use std::path::Path;
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::CreateExternalTable;

use super::DokTable;
use super::options::{DokOptions, find_local_file};
use crate::access;
use crate::dense::DType;
use crate::error::Error;
use crate::sql::base::blocking::run_blocking;
use crate::sql::base::boxed_methods::boxed_method;
use serrate_core::internal::keyed::{self, KeyedContents, KeyedVersion, key_type};

/// Creates tables of type [`DokTable`].
///
/// An existing file determines the contents; declared columns rename its columns and must otherwise
/// match. A missing file is created empty from declared columns, with the value as the last one,
/// and `OPTIONS (shape '1000, 50')` for a tensor or `OPTIONS (keys 'subject_id, code')` for a
/// dictionary. `OPTIONS (duplicates ..)` says what INSERT does with existing keys: `'last'`
/// (default), `'sum'`, `'error'`.
#[derive(Debug, Default)]
pub(crate) struct DokTableFactory;

impl TableProviderFactory for DokTableFactory {
    boxed_method!(DokTableFactory: create = create_table);
}

impl DokTableFactory {
    async fn create_table(
        &self,
        _state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let options = DokOptions::parse(&command.options, &["shape", "keys", "duplicates"])?;
        let refused = [
            ("PARTITIONED BY", !command.table_partition_cols.is_empty()),
            ("WITH ORDER", !command.order_exprs.is_empty()),
            ("UNBOUNDED", command.unbounded),
            ("a default value", !command.column_defaults.is_empty()),
        ];
        if let Some((what, _)) = refused.iter().find(|(_, given)| *given) {
            return plan_err!("{what} is not supported for tables STORED AS DOK; remove it");
        }
        let [location] = command.locations.as_slice() else {
            return plan_err!(
                "a table STORED AS DOK needs exactly one LOCATION, the path of a file, but {} are given; give one LOCATION",
                command.locations.len()
            );
        };
        let path = find_local_file(location)?;
        let declared: SchemaRef = Arc::new(command.schema.as_arrow().clone());
        let duplicates = options.duplicates;
        let (schema, version) = run_blocking({
            let path = path.clone();
            move || open_or_create(&path, &declared, &options)
        })
        .await?;
        Ok(Arc::new(DokTable::new(path, schema, version, duplicates)))
    }
}

fn open_or_create(
    path: &Path,
    declared: &SchemaRef,
    options: &DokOptions,
) -> crate::Result<(SchemaRef, Arc<KeyedVersion>)> {
    let declared: &[FieldRef] = declared.fields();
    if !access::exists(path) {
        let contents = create_contents(path, declared, options)?;
        let schema = contents.schema();
        match keyed::create(path, contents, false) {
            Ok(version) => return Ok((schema, version)),
            // Another process created the file in the meantime. The table uses that file.
            Err(Error::Exists(_)) => {}
            Err(e) => return Err(e),
        }
    }
    let version = keyed::open(path)?;
    check_options(path, &version.contents, options)?;
    let schema = rename_columns(path, &version.contents, declared)?;
    Ok((schema, version))
}

/// Returns an error if an option contradicts the contents of the file `path`.
fn check_options(path: &Path, contents: &KeyedContents, options: &DokOptions) -> crate::Result<()> {
    let wrong = |message: String| Error::file(path, message);
    match (contents, &options.shape, &options.keys) {
        (KeyedContents::Tensor(tensor), Some(shape), _) if tensor.shape() != shape => {
            return Err(wrong(format!(
                "the file has the shape {:?}, but the option 'shape' is {shape:?}; omit the option",
                tensor.shape()
            )));
        }
        (KeyedContents::Tensor(_), _, Some(_)) => {
            return Err(wrong(
                "the file is a tensor, which has axes and no keys; omit the option 'keys'".into(),
            ));
        }
        (KeyedContents::Keys(_), Some(_), _) => {
            return Err(wrong(
                "the file is a dictionary, which has no shape; omit the option 'shape'".into(),
            ));
        }
        _ => {}
    }
    let schema = contents.schema();
    let value = schema.fields().len().saturating_sub(1);
    let own_keys = schema.fields().iter().take(value);
    let own_keys: Vec<&str> = own_keys.map(|field| field.name().as_str()).collect();
    if let Some(keys) = &options.keys
        && *keys != own_keys
    {
        return Err(wrong(format!(
            "the file has the keys ({}), but the option 'keys' is ({}); omit the option",
            own_keys.join(", "),
            keys.join(", ")
        )));
    }
    Ok(())
}

/// Returns the schema of the file `path` with the names of the declared columns, if there are any.
/// Returns an error if their types do not match.
fn rename_columns(
    path: &Path,
    contents: &KeyedContents,
    declared: &[FieldRef],
) -> crate::Result<SchemaRef> {
    let own = contents.schema();
    if declared.is_empty() {
        return Ok(own);
    }
    let value = own.fields().len().saturating_sub(1);
    let fits = declared.len() == own.fields().len()
        && declared.iter().zip(own.fields()).enumerate().all(|(at, (given, own))| {
            // An axis is int64 whatever integer type the statement declares for it.
            let is_axis = matches!(contents, KeyedContents::Tensor(_)) && at < value;
            key_type(given.data_type()) == *own.data_type()
                || (is_axis && given.data_type().is_integer())
        });
    if !fits {
        let shown = |fields: &Fields| {
            let each = fields.iter().map(|f| format!("{} {}", f.name(), f.data_type()));
            each.collect::<Vec<_>>().join(", ")
        };
        return Err(Error::file(
            path,
            format!(
                "the file has the columns ({}), but the statement declares ({}); declare the types of the file, or declare no columns",
                shown(own.fields()),
                shown(&declared.into())
            ),
        ));
    }
    let named = own.fields().iter().zip(declared);
    let named = named.map(|(own, given)| own.as_ref().clone().with_name(given.name()));
    Ok(Arc::new(Schema::new(named.collect::<Vec<_>>())))
}

fn create_contents(
    path: &Path,
    declared: &[FieldRef],
    options: &DokOptions,
) -> crate::Result<KeyedContents> {
    let wrong = |message: String| Error::file(path, message);
    let names: Vec<String> = declared.iter().map(|f| f.name().clone()).collect();
    let Some((value, axes)) = declared.split_last().filter(|(_, axes)| !axes.is_empty()) else {
        return Err(wrong(
            "the file does not exist; to create it, declare its columns, the value last: CREATE EXTERNAL \
             TABLE m (i BIGINT, j BIGINT, v DOUBLE) .. OPTIONS (shape '1000, 50')".into(),
        ));
    };
    let none = |of: &DataType| new_empty_array(of);
    match (&options.shape, &options.keys) {
        (None, None) => Err(wrong(
            "the file does not exist; to create it, give the sizes of a sparse tensor in OPTIONS (shape '1000, 50'), or the key columns of a dictionary in OPTIONS (keys 'a, b')".into(),
        )),
        (Some(shape), _) => {
            if shape.len() != axes.len() {
                return Err(wrong(format!(
                    "the number of columns before the value is {}, but the number of axes of the shape \
                     {shape:?} is {}; declare one column per axis",
                    axes.len(),
                    shape.len()
                )));
            }
            let dtype = find_tensor_type(value.name(), value.data_type())?;
            let columns: Vec<_> = declared.iter().map(|f| none(f.data_type())).collect();
            KeyedContents::tensor(&names, &columns, Some(shape.clone()), dtype, 0, None)
        }
        (None, Some(keys)) => {
            let own = names.get(..axes.len()).unwrap_or_default();
            if keys != own {
                return Err(wrong(format!(
                    "the option 'keys' is ({}), but the columns before the value are ({}); list \
                     the same columns in the same order in both",
                    keys.join(", "),
                    own.join(", ")
                )));
            }
            let columns: Vec<_> = declared.iter().map(|f| none(f.data_type())).collect();
            KeyedContents::keys(&names, &columns, 0, None)
        }
    }
}

pub(super) fn find_tensor_type(name: &str, of: &DataType) -> crate::Result<DType> {
    DType::from_arrow(of).ok_or_else(|| {
        Error::invalid(format!(
            "the value column {name:?} must be a number or a boolean, not {of}; cast a decimal to DOUBLE or, for dates, times and strings, create a dictionary with OPTIONS (keys 'a, b'), where a and b are the key columns"
        ))
    })
}
