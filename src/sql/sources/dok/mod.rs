//! Files of sparse tensors and dictionaries: tables, changes, COPY, and look-ups by the name of a
//! table.

mod candidate_keys;
mod change;
mod factory;
mod format;
mod options;
mod scan;
mod table_names;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use crate::sql::base::blocking::run_blocking;
use crate::sql::base::boxed_methods::boxed_method;
use crate::sql::base::expression_parts::{remove_qualifiers, simplify_expr};
use crate::sql::base::subquery_parts::uses_only_row;

pub(crate) use factory::DokTableFactory;
pub(crate) use format::DokFormatFactory;
pub(crate) use table_names::register_dok_names;

use self::change::{ChangeSink, DokChange, make_nullable_schema};
pub(in crate::sql) use self::scan::DokSource;
use crate::access;
use crate::dok::DuplicateEntries;
use crate::sql::exec::change_query::ChangeQuery;
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::memory_tables::find_column_indices;
use crate::sql::sources::{accept_filters, describe_table};
use serrate_core::internal::keyed::{KeyedContents, KeyedVersion, LatestVersion, open};

/// A sparse tensor or a dictionary in a safetensors file as a SQL table.
///
/// A tensor has one int64 column per axis and a value column; a dictionary has its key columns and
/// the value. No two rows have the same keys, and nothing is NULL.
///
/// * A scan sees the file as it was when the query was planned, whatever happens to it afterwards.
/// * Conditions that leave few keys (`i = 3 AND j IN (4, 5)`) become look-ups in a hash table;
///   other conditions are checked entry by entry. `EXPLAIN` shows which.
/// * INSERT, UPDATE, DELETE and TRUNCATE write a new file under a temporary name when they run, and
///   then rename it; a statement that fails has changed nothing. Statements on one file, from any
///   table or process, wait for each other (this requires a file system with locks). If a program
///   that ignores the lock writes at the same time, the statement fails.
/// * INSERT sets entries: if several rows have the same key, the last of them is used, and it
///   replaces an entry of the table with this key. With `OPTIONS (duplicates 'error')` duplicates
///   are an error, with `'sum'` they are added up. INSERT OVERWRITE replaces all entries.
/// * In a tensor, zero is not an entry: writing it removes the entry.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{session, sql};
/// let dir = tempfile::tempdir()?;
/// let file = dir.path().join("m.safetensors");
/// let ctx = session();
/// for statement in [
///     format!("CREATE EXTERNAL TABLE m (i BIGINT, j BIGINT, v FLOAT) STORED AS DOK LOCATION '{}' OPTIONS (shape '1000, 1000')", file.display()),
///     "INSERT INTO m VALUES (3, 4, 0.5), (7, 8, 1.5)".into(),
///     "UPDATE m SET v = v * 2 WHERE i = 3".into(),
///     "DELETE FROM m WHERE i > 5".into(),
/// ] {
///     sql(&ctx, &statement).await?.collect().await?;
/// }
/// let tensor = serrate::io::dok::read(&file)?;
/// assert_eq!((tensor.nnz()?, tensor.at(&[3, 4])?.to_f64()?), (1, 1.0));
/// # Ok(())
/// # }
/// ```
pub(crate) struct DokTable {
    path: PathBuf,
    schema: SchemaRef,
    /// How INSERT treats existing keys; with `None`, an existing key is an error.
    duplicates: Option<DuplicateEntries>,
    latest: LatestVersion,
}

impl fmt::Debug for DokTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DokTable").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DokTable {
    /// Opens a sparse tensor or a dictionary, with the column names that the file stores.
    pub(crate) fn open(path: impl AsRef<Path>) -> crate::Result<Self> {
        let version = open(path.as_ref())?;
        Ok(Self::new(path.as_ref().into(), version.contents.schema(), version, None))
    }

    fn new(
        path: PathBuf,
        schema: SchemaRef,
        version: Arc<KeyedVersion>,
        duplicates: Option<Option<DuplicateEntries>>,
    ) -> Self {
        let duplicates = duplicates.unwrap_or(Some(DuplicateEntries::Last));
        let latest = LatestVersion::default();
        latest.set(version);
        // Entries are never NULL. The schema allows NULL so that the error of an INSERT can name
        // the row.
        let schema = make_nullable_schema(&schema);
        Self { path, schema, duplicates, latest }
    }

    pub(crate) fn read_current(&self) -> crate::Result<Arc<KeyedVersion>> {
        self.check_schema(open(&self.path)?)
    }

    fn check_schema(&self, version: Arc<KeyedVersion>) -> crate::Result<Arc<KeyedVersion>> {
        let types = |s: &SchemaRef| -> Vec<DataType> {
            s.fields().iter().map(|f| f.data_type().clone()).collect()
        };
        let (now, before) = (types(&version.contents.schema()), types(&self.schema));
        if now != before {
            let list = |types: &[DataType]| {
                types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            return Err(crate::Error::file(
                &self.path,
                format!(
                    "the columns of the file have the types ({}), but had ({}) when the table was created; drop the table and create it again",
                    list(&now),
                    list(&before)
                ),
            ));
        }
        self.latest.set(Arc::clone(&version));
        Ok(version)
    }

    fn plan_exprs(
        &self,
        state: &dyn Session,
        exprs: impl IntoIterator<Item = Expr>,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
        let each = exprs
            .into_iter()
            .map(|e| state.create_physical_expr(simplify_expr(state, e, &schema)?, &schema));
        each.collect()
    }

    /// Returns the plan of an UPDATE of the columns `set` or, if `set` is `None`, of a DELETE.
    /// Returns an error if the table lacks one of the columns.
    pub(in crate::sql) fn plan_change(
        &self,
        query: ChangeQuery,
        set: Option<&[String]>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = match set {
            None => DokChange::Delete { query },
            Some(names) => {
                DokChange::Update { set: find_column_indices(&self.schema, names)?, query }
            }
        };
        Ok(self.change_sink(change).plan())
    }

    fn change_sink(&self, change: DokChange) -> ChangeSink {
        let (path, schema) = (self.path.clone(), Arc::clone(&self.schema));
        ChangeSink { path, schema, change, latest: self.latest.clone() }
    }
}

#[async_trait]
impl TableProvider for DokTable {
    describe_table!(Base);

    boxed_method!(DokTable: scan = plan_scan);

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        // Conditions with a subquery or an outer column stay in a `FilterExec` above the scan.
        accept_filters(filters, uses_only_row)
    }

    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = DokChange::Insert { op, duplicates: self.duplicates };
        let order = input.properties().output_ordering().cloned().map(Into::into);
        build_ordered_sink(input, Arc::new(self.change_sink(change)), order, "DOK", None)
    }

    async fn truncate(&self, _state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.change_sink(DokChange::Truncate).plan())
    }
}

impl DokTable {
    async fn plan_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let path = self.path.clone();
        let version = self.check_schema(run_blocking(move || open(&path)).await?)?;
        let plain = filters.iter().cloned().map(remove_qualifiers).collect::<Result<Vec<_>>>()?;
        let keys = candidate_keys::find_keys(&plain, &self.schema, version.contents.len())?;
        let filters = self.plan_exprs(state, plain)?;
        let schema = Arc::clone(&self.schema);
        let partitions = state.config().target_partitions();
        let source =
            DokSource::try_new(version, schema, projection, filters, keys, limit, partitions)?;
        Ok(DataSourceExec::from_data_source(source))
    }
}

/// Returns the table of a path in FROM if the file is a sparse tensor or a dictionary, otherwise
/// `None`.
pub(in crate::sql) async fn open_path(url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(path) = options::find_local_file(url).ok().filter(|_| url.ends_with(".safetensors"))
    else {
        return Ok(None);
    };
    run_blocking(move || -> crate::Result<_> {
        if !access::is_file(&path) || !KeyedContents::is_in(&path) {
            return Ok(None);
        }
        let table: Arc<dyn TableProvider> = Arc::new(DokTable::open(path)?);
        Ok(Some(table))
    })
    .await
}
