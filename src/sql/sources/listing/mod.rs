//! Tables over files. The modules list the files, infer the columns and plan the scan.

pub(in crate::sql) mod empty;
mod factory;
pub(in crate::sql) mod file_kind;
mod files;
mod files_schema;
mod hive;
mod kind;
pub(in crate::sql) mod list_table;
mod scan;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Constraints, SchemaExt, Statistics, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use object_store::ObjectMeta;

use crate::config::SerrateOptions;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::sources::json::are_arrays;
use crate::sql::sources::nrt::NrtFormat;
use crate::sql::sources::nrt::position_fields::add_positions;
use crate::sql::sources::parquet::ParquetFileFormat;

pub(in crate::sql) use factory::FilesTableFactory;
pub(in crate::sql) use files::{FileSet, ListedFile};
pub(in crate::sql) use files_schema::{FilesSchema, infer_schema};
pub(in crate::sql) use hive::{infer_names, split_folders};
pub(in crate::sql) use kind::{find_kind, find_named_kind};

/// A table over the files of a [`FileSet`].
///
/// Its schema, writes and options are those of DataFusion's table. But this table itself lists the
/// files for each scan, and lists all of them even under a limit: DataFusion's table stops when the
/// listed files hold enough rows, so `LIMIT 3` would return rows of any file.
#[derive(Debug)]
pub(in crate::sql) struct FilesTable {
    table: ListingTable,
    files: FileSet,
    schema: SchemaRef,
    /// The schema of rows that INSERT writes. Unlike in `schema`, a column may be NOT NULL.
    inserted: SchemaRef,
    /// The columns in the order of CREATE EXTERNAL TABLE, if `schema` has another order.
    moved_columns: Vec<String>,
    has_required_fields: bool,
}

impl FilesTable {
    /// Creates the table. `has_required_fields` is whether a file may have a field that is not
    /// nullable in a nullable struct.
    pub(in crate::sql) fn new(
        table: ListingTable,
        files: FileSet,
        has_required_fields: bool,
    ) -> Self {
        let schema = Arc::clone(scan::find_table_schema(&table).table_schema());
        let inserted = Arc::clone(&schema);
        Self { table, files, schema, inserted, moved_columns: Vec::new(), has_required_fields }
    }

    /// Returns the schema of the rows that INSERT writes. A column that is NOT NULL in CREATE
    /// EXTERNAL TABLE is not nullable in this schema, but nullable in the schema of the table.
    pub(in crate::sql) fn inserted_schema(&self) -> &SchemaRef {
        &self.inserted
    }

    /// Makes INSERT refuse NULL in the columns that are not nullable in `declared`.
    fn with_required_columns(mut self, declared: &Schema) -> Self {
        let fields = self.schema.fields().iter().map(|field| {
            let found = declared.field_with_name(field.name());
            let is_nullable = found.map_or(field.is_nullable(), Field::is_nullable);
            Arc::new(field.as_ref().clone().with_nullable(is_nullable))
        });
        let fields: Fields = fields.collect();
        let metadata = self.schema.metadata().clone();
        self.inserted = Arc::new(Schema::new_with_metadata(fields, metadata));
        self
    }

    /// Sets the columns in the order in which the statement declares them; none if it declares
    /// none.
    fn with_declared_order(mut self, declared: Vec<String>) -> Self {
        let returned = self.schema.fields().iter().map(|field| field.name());
        if !declared.is_empty() && !declared.iter().eq(returned) {
            self.moved_columns = declared;
        }
        self
    }

    /// Returns all columns in the order in which the statement declares them, or no columns if the
    /// table returns its columns in this order.
    pub(in crate::sql) fn moved_columns(&self) -> &[String] {
        &self.moved_columns
    }

    fn is_of<F: FileFormat>(&self) -> bool {
        self.table.options().format.is::<F>()
    }

    /// Whether a field of a NULL struct is always NULL when a file is read. True only for Parquet
    /// files without required fields in nullable structs; see [`FilesSchema`].
    pub(in crate::sql) fn has_null_fields(&self) -> bool {
        self.is_of::<ParquetFileFormat>() && !self.has_required_fields
    }

    /// Whether list lengths in the table's files can be read without the values.
    pub(in crate::sql) fn has_lengths(&self, options: &ConfigOptions) -> bool {
        let parquet = || {
            let options = SerrateOptions::of(options);
            options.parquet_lists && !options.disabled_rules.contains("serrate_parquet_lists")
        };
        self.is_of::<NrtFormat>() || self.is_of::<ParquetFileFormat>() && parquet()
    }

    /// Adds the position columns `names` (`_file`, `_row`) that this table does not have yet.
    /// Returns `None` if the table already has all of them, or if its files are not `.nrt`.
    pub(in crate::sql) fn with_positions(&self, names: &[&str]) -> Option<Self> {
        if !self.is_of::<NrtFormat>() {
            return None;
        }
        let names: Vec<&str> =
            names.iter().copied().filter(|n| self.schema.index_of(n).is_err()).collect();
        if names.is_empty() {
            return None;
        }
        let in_files = scan::find_table_schema(&self.table);
        let config = ListingTableConfig::new_with_multi_paths(self.table.table_paths().clone())
            .with_listing_options(self.table.options().clone())
            .with_schema(add_positions(in_files.file_schema(), &names));
        let table = ListingTable::try_new(config).ok()?;
        Some(Self::new(table, self.files.clone(), self.has_required_fields))
    }
}

impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.table.get_logical_plan()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.table.get_column_default(column)
    }

    boxed_method!(FilesTable: scan = plan_scan);

    boxed_method!(FilesTable: scan_with_args = plan_scan_with_args);

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }

    boxed_method!(FilesTable: insert_into = plan_insert);
}

impl FilesTable {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let args = ScanArgs::default()
            .with_projection(projection.map(Vec::as_slice))
            .with_filters(Some(filters));
        Ok(self.scan_with_args(state, args).await?.into_inner())
    }

    async fn plan_scan_with_args(
        &self,
        state: &dyn Session,
        args: ScanArgs<'_>,
    ) -> Result<ScanResult> {
        // The limit is removed here, because the physical plan passes it to the scan later.
        scan::plan_scan(&self.table, &self.files, state, args.with_limit(None)).await
    }

    async fn plan_insert(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.schema.logically_equivalent_names_and_types(&input.schema())?;
        let options = self.table.options();
        let paths = self.table.table_paths();
        if let Some(path) = paths.first()
            && let Some(pattern) = path.get_glob()
        {
            return plan_err!(
                "cannot insert into the table, because its location '{path}{pattern}' is a pattern, which the name of a new file may not match; create the table with LOCATION 'folder/'"
            );
        }
        let Some(path) = paths.first().filter(|path| path.is_collection()) else {
            return plan_err!(
                "cannot insert into the table, because its location '{}' is not a folder; create the table with LOCATION 'folder/'",
                paths.first().map(ToString::to_string).unwrap_or_default()
            );
        };
        self.files.check_insert(state).await?;
        self.refuse_lists(state, path).await?;
        let config = FileSinkConfig {
            original_url: String::default(),
            object_store_url: path.object_store(),
            table_paths: self.table.table_paths().clone(),
            file_group: FileGroup::new(Vec::new()),
            output_schema: Arc::clone(&self.inserted),
            table_partition_cols: options.table_partition_cols.clone(),
            insert_op,
            keep_partition_by_columns: state.config_options().execution.keep_partition_by_columns,
            file_extension: options.format.get_ext(),
            file_output_mode: FileOutputMode::Automatic,
        };
        let orders = self.table.try_create_output_ordering(state.execution_props(), &[])?;
        let order = orders.into_iter().next().map(Into::into);
        options.format.create_writer_physical_plan(input, state, config, order).await
    }

    /// Returns an error if the files are JSON lists of records. INSERT writes one record per line,
    /// and a table cannot be read if its files have both forms.
    async fn refuse_lists(&self, state: &dyn Session, path: &ListingTableUrl) -> Result<()> {
        if !["json", "jsonl", "ndjson"].contains(&self.table.options().format.get_ext().as_str()) {
            return Ok(());
        }
        let store = state.runtime_env().object_store(path)?;
        let listed = self.files.list_files(state).await?;
        let objects = listed.into_iter().map(|file| file.meta).filter(|object| object.size > 0);
        let objects: Vec<ObjectMeta> = objects.collect();
        match are_arrays(state, &store, &objects).await? {
            false => Ok(()),
            true => plan_err!(
                "cannot insert into the table, because its JSON files are lists of records, and INSERT writes one record per line; convert the files to one record per line, as with serrate convert IN OUT.ndjson"
            ),
        }
    }
}
