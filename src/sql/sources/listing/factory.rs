//! Creates tables over files for `CREATE EXTERNAL TABLE .. LOCATION 'path'`.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DFSchema, internal_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::CreateExternalTable;
use serrate_core::internal::find_repeated;

use crate::array::{leaf_type, list_depth};
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::sources::listing::empty::refuse_empty;
use crate::sql::sources::listing::file_kind::{FileKind, list_known_formats};
use crate::sql::sources::listing::hive::find_values;
use crate::sql::sources::listing::{
    FileSet, FilesSchema, FilesTable, ListedFile, find_named_kind, infer_names, infer_schema,
    split_folders,
};
use crate::sql::sources::urls::{format_location, parse_path};
use crate::sql::sources::whole_file_format::{declare_columns, find_named_columns};

/// Creates tables over files. Passes CREATE UNBOUNDED EXTERNAL TABLE on to another factory.
#[derive(Debug)]
pub(in crate::sql) struct FilesTableFactory {
    unbounded: Arc<dyn TableProviderFactory>,
}

impl FilesTableFactory {
    pub(in crate::sql) fn new(unbounded: Arc<dyn TableProviderFactory>) -> Self {
        Self { unbounded }
    }
}

impl TableProviderFactory for FilesTableFactory {
    boxed_method!(FilesTableFactory: create = create_table);
}

impl FilesTableFactory {
    async fn create_table(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        if command.unbounded {
            return self.unbounded.create(state, command).await;
        }
        let Some(state) = state.as_any().downcast_ref::<SessionState>() else {
            return Err(internal_datafusion_err!(
                "internal error: CREATE EXTERNAL TABLE needs a SessionState; please report it"
            ));
        };
        let paths = parse_locations(command)?;
        let kind = find_named_kind(state, &paths, &command.file_type, &command.options).await?;
        let Some(factory) = state.get_file_format_factory(&command.file_type) else {
            return plan_err!(
                "the format {} is unknown; STORED AS accepts {}",
                command.file_type,
                list_known_formats(state)
            );
        };
        refuse_copy_options(command, &kind)?;
        let mut format = factory.create(state, &command.options)?;
        let files = FileSet::new(paths.clone(), Some(kind.clone()));
        let listed = files.list_files(state).await?;
        refuse_empty(&listed, &kind.extension)?;
        let declared = parse_columns(command)?;
        if declared.is_none() && listed.is_empty() {
            return plan_err!(
                "table '{}': there is no file at '{}', so the columns are unknown; declare the columns, as in CREATE EXTERNAL TABLE t (a INT) ..",
                command.name,
                command.locations.join("', '")
            );
        }
        let (columns, folders) = match declared {
            Some(schema) => {
                check_csv_types(command, &kind, &schema)?;
                check_letter_case(state, command, &format, &paths, &listed, &schema).await?;
                format = declare_columns(format);
                (FilesSchema::from_declared(schema), parse_folders(command)?)
            }
            None => {
                let Some(path) = paths.first() else { return fail_without_location() };
                let store = state.runtime_env().object_store(path)?;
                let mut columns = infer_schema(state, &store, &format, &listed).await?;
                let folders = infer_folders(state, command, &listed)?;
                let (schema, folders) = split_folders(&columns.schema, folders);
                columns.schema = schema;
                (columns, folders)
            }
        };
        let FilesSchema { schema, has_required_fields } = columns;
        for file in &listed {
            find_values(file, &folders)?;
        }
        check_order(command, &schema)?;
        let listing = ListingOptions::new(format)
            .with_file_extension(format!(".{kind}"))
            .with_file_sort_order(command.order_exprs.clone())
            .with_table_partition_cols(folders);
        let config = ListingTableConfig::new_with_multi_paths(paths)
            .with_listing_options(listing)
            .with_schema(Arc::new(make_nullable(&schema)));
        let table = ListingTable::try_new(config)?
            .with_definition(command.definition.clone())
            .with_constraints(command.constraints.clone())
            .with_column_defaults(command.column_defaults.clone());
        let order = command.schema.inner().fields().iter().map(|field| field.name().clone());
        let table = FilesTable::new(table, files, has_required_fields)
            .with_required_columns(&schema)
            .with_declared_order(order.collect());
        Ok(Arc::new(table))
    }
}

/// Returns the columns of files as nullable columns. A file, also one that is written later, may
/// lack a column or have NULL in it, even if the statement declares it NOT NULL or the first files
/// require it. Otherwise the planner would replace `x IS NOT NULL` with true for rows with NULL.
fn make_nullable(schema: &Schema) -> Schema {
    let as_nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let fields: Fields = schema.fields().iter().map(as_nullable).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn fail_without_location<T>() -> Result<T> {
    plan_err!(
        "CREATE EXTERNAL TABLE needs a location, but none is given; add one, as in LOCATION 'folder/'"
    )
}

fn parse_locations(command: &CreateExternalTable) -> Result<Vec<ListingTableUrl>> {
    let parse = |location: &String| Ok(parse_path(location)?.with_table_ref(command.name.clone()));
    let paths: Vec<ListingTableUrl> = command.locations.iter().map(parse).collect::<Result<_>>()?;
    let Some(first) = paths.first() else { return fail_without_location() };
    match paths.iter().find(|path| path.object_store() != first.object_store()) {
        None => Ok(paths),
        Some(other) => plan_err!(
            "table '{}': '{first}' and '{other}' are in different object stores; create one table per store",
            command.name
        ),
    }
}

/// Returns an error for an option that only COPY follows: `overwrite`, for NRT `plain`, and for CSV
/// the formats of dates and times, because queries and INSERT use the default formats.
fn refuse_copy_options(command: &CreateExternalTable, kind: &FileKind) -> Result<()> {
    let formats = [
        "date_format",
        "datetime_format",
        "time_format",
        "timestamp_format",
        "timestamp_tz_format",
    ];
    for key in command.options.keys() {
        match key.strip_prefix("format.").unwrap_or(key) {
            name if name == "overwrite" || (name == "plain" && kind.extension == "nrt") => {
                return plan_err!(
                    "table '{}': the option {name} applies only to COPY; remove it",
                    command.name
                );
            }
            name if kind.extension == "csv" && formats.contains(&name) => {
                return plan_err!(
                    "table '{}': the option {name} of CSV applies only to COPY, because queries read dates and times in the default format; remove the option, declare the column as VARCHAR, and convert its strings in queries, as in to_timestamp(x, '%d.%m.%Y')",
                    command.name
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn parse_columns(command: &CreateExternalTable) -> Result<Option<SchemaRef>> {
    let schema = command.schema.inner();
    if schema.fields().is_empty() {
        return Ok(None);
    }
    let in_files = schema.fields().iter().enumerate();
    let in_files = in_files.filter(|(_, f)| !command.table_partition_cols.contains(f.name()));
    let in_files: Vec<usize> = in_files.map(|(i, _)| i).collect();
    Ok(Some(Arc::new(schema.project(&in_files)?)))
}

/// Returns an error if a column of a table over CSV files is a list, a struct or a map. Without
/// this check, only a query that reads the column would fail.
fn check_csv_types(
    command: &CreateExternalTable,
    kind: &FileKind,
    schema: &SchemaRef,
) -> Result<()> {
    let nested = schema.fields().iter().find(|field| field.data_type().is_nested());
    let Some(field) = nested.filter(|_| kind.extension == "csv") else { return Ok(()) };
    let (name, t) = (field.name(), field.data_type());
    match list_depth(t) {
        0 => plan_err!(
            "table '{}': the column '{name}' has the type {t}, but the fields of CSV files are scalars; declare the column as VARCHAR, or use Parquet or NDJSON files",
            command.name
        ),
        _ => plan_err!(
            "table '{}': the column '{name}' has the type {t}, but the fields of CSV files are scalars; declare the column as VARCHAR and cast the text of the lists in queries, as in {name}::DOUBLE[]",
            command.name
        ),
    }
}

/// Returns an error if the first file lacks a declared column or field of a struct, but has one
/// whose name differs only in the case of letters. SQL converts names without quotes to lower case,
/// and such a declared column would be NULL in every row. CSV files are not checked, because their
/// readers ignore the case of letters.
async fn check_letter_case(
    state: &SessionState,
    command: &CreateExternalTable,
    format: &Arc<dyn FileFormat>,
    paths: &[ListingTableUrl],
    listed: &[ListedFile],
    declared: &Schema,
) -> Result<()> {
    let file = listed.iter().find(|file| file.meta.size > 0);
    let (Some(path), Some(file)) = (paths.first(), file) else { return Ok(()) };
    if !["arrow", "json", "jsonl", "ndjson", "nrt", "parquet"].contains(&format.get_ext().as_str())
    {
        return Ok(());
    }
    let store = state.runtime_env().object_store(path)?;
    // If the file cannot be read, queries report the error.
    let found = find_named_columns(format, state, &store, &file.meta).await;
    let Ok(found) = found else { return Ok(()) };
    match find_other_case(declared.fields(), found.fields()) {
        None => Ok(()),
        Some(OtherCase { within, declared, found }) => plan_err!(
            "table '{}': {} has no column '{within}{declared}', but a column '{within}{found}'; declare its name in double quotes, as in CREATE EXTERNAL TABLE t (\"{found}\" INT) ..",
            command.name,
            format_location(&file.meta.location)
        ),
    }
}

/// A declared column or field, and the name in a file that differs from its name only in the case
/// of letters.
struct OtherCase {
    /// The column and the structs that contain the field, as in `s.`; empty for a column.
    within: String,
    declared: String,
    found: String,
}

fn find_other_case(declared: &Fields, found: &Fields) -> Option<OtherCase> {
    declared.iter().find_map(|field| {
        if let Some((_, same)) = found.find(field.name()) {
            let inner = find_other_case(&list_fields(field), &list_fields(same))?;
            let within = format!("{}.{}", field.name(), inner.within);
            return Some(OtherCase { within, ..inner });
        }
        let is_alike = |other: &&FieldRef| {
            other.name().eq_ignore_ascii_case(field.name()) && declared.find(other.name()).is_none()
        };
        let other = found.iter().find(is_alike)?;
        let (declared, found) = (field.name().clone(), other.name().clone());
        Some(OtherCase { within: String::new(), declared, found })
    })
}

/// Returns the fields of a struct, or of the structs in a list; no fields for other types.
fn list_fields(field: &FieldRef) -> Fields {
    match leaf_type(field.data_type()) {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    }
}

/// Returns an error if PARTITIONED BY names a column twice.
fn check_folder_names(command: &CreateExternalTable) -> Result<()> {
    match find_repeated(&command.table_partition_cols) {
        None => Ok(()),
        Some(name) => plan_err!(
            "table '{}': PARTITIONED BY names the column '{name}' twice; name it once",
            command.name
        ),
    }
}

/// Returns the names and types of the columns in PARTITIONED BY. A column that the statement does
/// not declare is an error.
fn parse_folders(command: &CreateExternalTable) -> Result<Vec<(String, DataType)>> {
    check_folder_names(command)?;
    let column = |name: &String| {
        let field = command.schema.inner().field_with_name(name).map_err(|_| {
            plan_datafusion_err!(
                "table '{}': PARTITIONED BY names '{name}', which is not among the declared columns; declare it",
                command.name
            )
        })?;
        Ok((name.clone(), field.data_type().clone()))
    };
    command.table_partition_cols.iter().map(column).collect()
}

fn infer_folders(
    state: &SessionState,
    command: &CreateExternalTable,
    listed: &[ListedFile],
) -> Result<Vec<String>> {
    check_folder_names(command)?;
    let declared = &command.table_partition_cols;
    let infers = state.config_options().execution.listing_table_factory_infer_partitions;
    match declared.is_empty() && infers {
        true => infer_names(listed),
        false => Ok(declared.clone()),
    }
}

fn check_order(command: &CreateExternalTable, schema: &SchemaRef) -> Result<()> {
    let known = DFSchema::try_from(Arc::clone(schema))?;
    let keys = command.order_exprs.iter().flatten();
    let unknown = keys
        .flat_map(|by| by.expr.column_refs())
        .find(|c| !known.has_column(c) && !command.table_partition_cols.contains(&c.name));
    match unknown {
        None => Ok(()),
        Some(column) => {
            plan_err!(
                "table '{}': WITH ORDER names '{column}', which is not a column of the table; name one of its columns",
                command.name
            )
        }
    }
}
