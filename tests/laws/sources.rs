//! The sessions that run statements: those of the references, and ours over every source with every
//! setting.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Schema, SchemaRef,
};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::execution::SessionStateBuilder;
use datafusion::functions_nested::array_has::array_has_udf;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerRule};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::collect;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use serrate::datafusion;
use serrate::io::nrt::{self, WriteOptions};
use serrate::table::RaggedTable;
use tempfile::TempDir;

use crate::claims::{CheckClaims, wrap_checked};
use crate::cuts::{Setup, Source, Wrapping};
use crate::foreign::{Foreign, write_files};
use crate::tables::{Table, World};

/// The number of files of a table whose first and third files have no rows.
pub const HALF_EMPTY: usize = 4;

/// Divides `rows` rows into `parts` ranges of about equal size. If `parts` is [`HALF_EMPTY`],
/// divides them into two halves, each after an empty range. Returns the first row and the number of
/// rows of each range.
pub fn split_rows(rows: usize, parts: usize) -> Vec<(usize, usize)> {
    if parts == HALF_EMPTY {
        let half = rows / 2;
        return vec![(0, 0), (0, half), (half, 0), (half, rows - half)];
    }
    let each = rows.div_ceil(parts).max(1);
    (0..parts).map(|i| (i * each).min(rows)).map(|from| (from, each.min(rows - from))).collect()
}

/// Registers a small table in memory that statements use in joins and look-ups.
pub fn register_names(ctx: &SessionContext) {
    let schema = Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]));
    let names: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![0, 1, 2, 5])),
        Arc::new(StringArray::from(vec![Some("none"), Some("one"), None, Some("p")])),
    ];
    let rows = RecordBatch::try_new(Arc::clone(&schema), names).unwrap();
    let table = MemTable::try_new(schema, vec![vec![rows]]).unwrap();
    ctx.register_table("names", Arc::new(table)).unwrap();
}

fn register_partitions(
    ctx: &SessionContext,
    name: &str,
    partitions: Vec<Vec<RecordBatch>>,
    rows: &RecordBatch,
) {
    let table = MemTable::try_new(rows.schema(), partitions).unwrap();
    ctx.deregister_table(name).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

/// Creates the session of the reference: plain DataFusion with our functions and syntax, a few of
/// our rules, and only those rules of DataFusion that a plan requires. It has our aggregates,
/// because results are compared bit by bit, and DataFusion's aggregates of floats depend on
/// partitions and batches.
fn create_plain_session() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1).with_information_schema(true);
    config.options_mut().sql_parser.dialect = Dialect::DuckDB;
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let mut builder = serrate::sql::configure(builder);
    // We define the order of lists that contain NULL, so that the reference needs our rule for it.
    let state = serrate::sql::session().state();
    let mut analyzer = Analyzer::new();
    let order = state.analyzer().rules.iter().filter(|r| r.name() == "serrate_nested_order");
    analyzer.rules.extend(order.cloned());
    *builder.analyzer() = Some(analyzer);
    *builder.analyzer_rules() = None;
    *builder.optimizer_rules() = None;
    *builder.physical_optimizer_rules() = None;
    let rules = state.optimizer().rules.iter();
    let own = |name| rules.clone().find(|r| r.name() == name).cloned().unwrap();
    let needed: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(RewriteSetComparison::new()),
        // DataFusion's own simplifier fails if it evaluates a constant that a CASE guards.
        own("simplify_expressions"),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        // NOT IN a list with NULL is right only with join keys, which this rule extracts.
        Arc::new(ExtractEquijoinPredicate::new()),
        // In our sessions, zeros of either sign are equal, and so are all NaN. The reference needs
        // this rule for that.
        own("serrate_float_keys"),
        // Windows over nested constants fail without it.
        own("serrate_nested_constants"),
    ];
    *builder.optimizer() = Some(Optimizer::with_rules(needed));
    *builder.physical_optimizers() = Some(needed_physical());
    let mut ctx = SessionContext::new_with_state(builder.build());
    serrate::sql::register_functions(&mut ctx).unwrap();
    serrate::sql::register_operators(&ctx).unwrap();
    // Scalar functions that DataFusion lacks, such as `strftime`.
    let known = ctx.state().scalar_functions().clone();
    for (name, function) in state.scalar_functions() {
        if !known.contains_key(name) {
            ctx.register_udf(function.as_ref().clone());
        }
    }
    for aggregate in state.aggregate_functions().values() {
        ctx.register_udaf(aggregate.as_ref().clone());
    }
    // Our window functions return ranks as Int64, whereas those of DataFusion return UInt64.
    for window in state.window_functions().values() {
        ctx.register_udwf(window.as_ref().clone());
    }
    ctx.register_udf(ScalarUDF::new_from_impl(SearchedList { inner: array_has_udf() }));
    register_names(&ctx);
    ctx
}

/// DataFusion's `array_has` without its rewrite of constant lists to IN. The rewrite returns NULL
/// instead of false if the list contains NULL and not the value. The test
/// `stock_constant_lists_still_contain_null` in `tests/sql/quantified.rs` fails once DataFusion has
/// corrected it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SearchedList {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for SearchedList {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> datafusion::error::Result<DataType> {
        self.inner.return_type(types)
    }

    fn invoke_with_args(
        &self,
        args: ScalarFunctionArgs,
    ) -> datafusion::error::Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }
}

/// Returns the physical optimizer rules that add required sorts and repartitions and check the plan
/// for them.
fn needed_physical() -> PhysicalOptimizer {
    let needed =
        ["OutputRequirements", "EnsureRequirements", "LambdaParameters", "SanityCheckPlan"];
    let all = PhysicalOptimizer::new().rules;
    let rules = all.into_iter().filter(|r| needed.contains(&r.name())).collect();
    PhysicalOptimizer::with_rules(rules)
}

/// The sessions of one thread. They are kept, while their tables and settings change.
pub struct Sessions {
    /// Plain DataFusion over tables in memory, which is a reference.
    pub plain: SessionContext,
    /// Our session over tables in memory, with one partition and large batches, which is a
    /// reference.
    pub own: SessionContext,
    ours: SessionContext,
    /// Our session whose plans check the claims of their nodes.
    checked: SessionContext,
    /// The settings of `ours` to which those of a cut are added.
    base: ConfigOptions,
}

impl Sessions {
    pub fn new() -> Self {
        let session = || {
            let ctx = serrate::sql::session_with(SessionConfig::new().with_target_partitions(1));
            register_names(&ctx);
            ctx
        };
        let ours = session();
        let base = ours.state_ref().read().config_options().as_ref().clone();
        let checked = session();
        checked.state_ref().write().config_mut().set_extension(Arc::new(CheckClaims));
        Self { plain: create_plain_session(), own: session(), ours, checked, base }
    }

    /// Registers the tables of a world in the sessions of the references, and sets the time zone of
    /// our sessions.
    pub fn enter(&self, world: &World) {
        for table in &world.tables {
            for ctx in [&self.plain, &self.own] {
                register_partitions(ctx, &table.name, vec![vec![table.rows.clone()]], &table.rows);
            }
        }
        set_zone(&self.own, world.zone);
    }

    /// Returns a session with the settings of a cut, in which the tables of a world are stored as
    /// the cut requires.
    pub async fn cut(&self, setup: &Setup, tables: &mut Stored<'_>) -> &SessionContext {
        let ctx = if setup.claims { &self.checked } else { &self.ours };
        {
            let state = ctx.state_ref();
            let mut state = state.write();
            let options = state.config_mut().options_mut();
            *options = self.base.clone();
            for (name, value) in setup.settings() {
                options.set(&name, &value).unwrap_or_else(|e| panic!("{name} = {value}: {e}"));
            }
        }
        set_zone(ctx, tables.world.zone);
        for (name, provider) in tables.get(ctx, setup).await {
            ctx.deregister_table(name.as_str()).unwrap();
            ctx.register_table(name.as_str(), Arc::clone(provider)).unwrap();
        }
        ctx
    }
}

fn set_zone(ctx: &SessionContext, zone: &str) {
    let state = ctx.state_ref();
    let mut state = state.write();
    state.config_mut().options_mut().execution.time_zone = Some(zone.to_string());
}

/// The properties of a cut that determine how tables are stored.
type Key = (Source, Option<Foreign>, usize, usize, usize);

type NamedTable = (String, Arc<dyn TableProvider>);

/// The tables of a world, stored in each way that a cut has needed so far.
pub struct Stored<'w> {
    pub world: &'w World,
    pub folder: TempDir,
    made: BTreeMap<Key, Vec<NamedTable>>,
}

impl<'w> Stored<'w> {
    pub fn new(world: &'w World) -> Self {
        Self { world, folder: tempfile::tempdir().unwrap(), made: BTreeMap::new() }
    }

    async fn get(
        &mut self,
        ctx: &SessionContext,
        setup: &Setup,
    ) -> &[(String, Arc<dyn TableProvider>)] {
        let batch = if setup.source == Source::Memory { setup.batch } else { 0 };
        let key = (setup.source, setup.foreign, setup.files, setup.partitions, batch);
        if !self.made.contains_key(&key) {
            let mut tables = Vec::new();
            for table in &self.world.tables {
                let made = store_table(ctx, table, setup, self.folder.path()).await;
                tables.push((table.name.clone(), made));
            }
            self.made.insert(key, tables);
        }
        &self.made[&key]
    }
}

/// Stores a table in memory or in files in `folder`, as the cut requires.
async fn store_table(
    ctx: &SessionContext,
    table: &Table,
    setup: &Setup,
    folder: &Path,
) -> Arc<dyn TableProvider> {
    let rows = &table.rows;
    if setup.source == Source::Memory {
        let batches = |(from, n): (usize, usize)| -> Vec<RecordBatch> {
            (0..n)
                .step_by(setup.batch.min(n.max(1)))
                .map(|at| rows.slice(from + at, setup.batch.min(n - at)))
                .collect()
        };
        let parts = split_rows(rows.num_rows(), setup.files).into_iter().map(batches).collect();
        return Arc::new(MemTable::try_new(rows.schema(), parts).unwrap());
    }
    let writer = setup.foreign.map_or_else(String::new, |foreign| foreign.code());
    let name = format!("{:?}{}{}{writer}", setup.source, setup.files, table.name).to_lowercase();
    let at = folder.join(name);
    if !at.exists() {
        write_table(table, setup, &at);
    }
    let columns = setup.foreign.map_or_else(String::new, |of| of.declared_columns(table));
    let create = format!(
        "CREATE EXTERNAL TABLE {}{columns} STORED AS {} LOCATION '{}/'",
        table.name,
        format!("{:?}", setup.source).to_uppercase(),
        at.display()
    );
    ctx.deregister_table(table.name.as_str()).unwrap();
    run_query(ctx, &create).await.unwrap_or_else(|e| panic!("{create}: {e}"));
    ctx.table_provider(table.name.as_str()).await.unwrap()
}

/// Creates a folder and writes a table to files in it, as the cut requires.
pub fn write_table(table: &Table, setup: &Setup, folder: &Path) {
    let rows = &table.rows;
    std::fs::create_dir_all(folder).unwrap();
    if let Some(foreign) = &setup.foreign {
        return write_files(setup.source, folder, rows, setup.files, foreign);
    }
    for (i, (from, n)) in split_rows(rows.num_rows(), setup.files).into_iter().enumerate() {
        write_source(setup.source, folder, i, &rows.slice(from, n));
    }
}

fn write_source(source: Source, folder: &Path, number: usize, rows: &RecordBatch) {
    let file = |extension: &str| {
        std::fs::File::create(folder.join(format!("{number}.{extension}"))).unwrap()
    };
    match source {
        Source::Memory => {}
        Source::Arrow => {
            let mut writer = FileWriter::try_new(file("arrow"), &rows.schema()).unwrap();
            // Each file has two batches.
            let half = rows.num_rows() / 2;
            writer.write(&take_whole(&rows.slice(0, half))).unwrap();
            writer.write(&take_whole(&rows.slice(half, rows.num_rows() - half))).unwrap();
            writer.finish().unwrap();
        }
        Source::Parquet => {
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(5))
                .set_data_page_row_count_limit(2)
                .set_write_batch_size(2)
                .build();
            let mut writer =
                ArrowWriter::try_new(file("parquet"), rows.schema(), Some(properties)).unwrap();
            writer.write(rows).unwrap();
            writer.close().unwrap();
        }
        Source::Nrt => {
            let table = RaggedTable::try_from_batch(rows).unwrap();
            let path = folder.join(format!("{number}.nrt"));
            nrt::write(&path, &table, &WriteOptions::default()).unwrap();
        }
    }
}

/// Returns a copy of the rows that shares no buffers with other rows.
fn take_whole(rows: &RecordBatch) -> RecordBatch {
    concat_batches(&rows.schema(), [rows]).unwrap()
}

/// The rows of a result as strings. The string of a value is exact, also for floats.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub schema: SchemaRef,
    pub rows: Vec<Vec<String>>,
    pub batches: Vec<RecordBatch>,
}

/// Runs a statement and returns its rows. The text of an error or of a panic is returned as `Err`.
pub async fn run_query(ctx: &SessionContext, sql: &str) -> Result<Rows, String> {
    let (ctx, text) = (ctx.clone(), sql.to_string());
    let task = tokio::spawn(async move {
        let frame = serrate::sql::sql(&ctx, &text).await.map_err(|e| e.strip_backtrace())?;
        let schema = Arc::clone(frame.schema().inner());
        let claims = ctx.state_ref().read().config().get_extension::<CheckClaims>().is_some();
        let batches = match claims {
            true => collect_checked(frame).await,
            false => frame.collect().await,
        };
        let batches = batches.map_err(|e| e.strip_backtrace())?;
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                rows.push(batch.columns().iter().map(|c| show_cell(c, row)).collect());
            }
        }
        Ok::<_, String>(Rows { schema, rows, batches })
    });
    match task.await {
        Ok(answer) => answer,
        Err(e) => Err(format!("panic: {e}")),
    }
}

/// Runs a statement itself, or stores its result as a table or a view and selects all rows of it.
pub async fn run_wrapped(
    ctx: &SessionContext,
    wrapping: Wrapping,
    sql: &str,
) -> Result<Rows, String> {
    let (kind, name) = match wrapping {
        Wrapping::Query => return run_query(ctx, sql).await,
        Wrapping::Table => ("TABLE", "stored_rows"),
        Wrapping::View => ("VIEW", "stored_query"),
    };
    run_query(ctx, &format!("CREATE OR REPLACE {kind} {name} AS {sql}")).await?;
    let all = format!("SELECT * FROM {name}");
    let rows = run_query(ctx, &all).await?;
    let (own, stored) = (types_of(ctx, sql).await?, types_of(ctx, &all).await?);
    match own == stored {
        true => Ok(rows),
        false => Err(format!("the types {stored:?} of a {kind} AS a query with {own:?}")),
    }
}

/// Plans a statement and returns the types of its columns.
async fn types_of(ctx: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let (ctx, text) = (ctx.clone(), sql.to_string());
    let task = tokio::spawn(async move {
        let frame = serrate::sql::sql(&ctx, &text).await.map_err(|e| e.strip_backtrace())?;
        let plan = frame.create_physical_plan().await.map_err(|e| e.strip_backtrace())?;
        let schema = plan.schema();
        let types = schema.fields().iter().map(|f| name_type(f.data_type()));
        Ok::<_, String>(types.collect::<Vec<String>>())
    });
    match task.await {
        Ok(types) => types,
        Err(e) => Err(format!("panic: {e}")),
    }
}

/// Returns the name of a type without nullability. All string types have the same name.
fn name_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::List(item) => format!("List({})", name_type(item.data_type())),
        DataType::LargeList(item) => format!("LargeList({})", name_type(item.data_type())),
        DataType::FixedSizeList(item, n) => {
            format!("FixedSizeList({n}, {})", name_type(item.data_type()))
        }
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|f| format!("{} {}", f.name(), name_type(f.data_type())));
            format!("Struct({})", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

async fn collect_checked(frame: DataFrame) -> datafusion::error::Result<Vec<RecordBatch>> {
    let tasks = Arc::new(frame.task_ctx());
    let plan = wrap_checked(frame.create_physical_plan().await?)?;
    collect(plan, tasks).await
}

/// Converts a value to a string. Numeric types of all widths give the same string, and different
/// floats give different strings; all NaN are the same.
fn show_cell(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".into();
    }
    let list = |inner: ArrayRef| {
        let values: Vec<_> = (0..inner.len()).map(|i| show_cell(&inner, i)).collect();
        format!("[{}]", values.join(", "))
    };
    match array.data_type() {
        DataType::List(_) => list(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row)),
        DataType::Struct(_) => {
            let s = array.as_struct();
            let values: Vec<_> = s.columns().iter().map(|c| show_cell(c, row)).collect();
            format!("{{{}}}", values.join(", "))
        }
        DataType::Dictionary(_, values) => {
            show_cell(&cast(&array.slice(row, 1), values).unwrap(), 0)
        }
        DataType::Float16 => {
            format!("{:?}", f64::from(array.as_primitive::<Float16Type>().value(row)))
        }
        DataType::Float32 => format!("{:?}", array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8View | DataType::LargeUtf8 | DataType::Utf8 => {
            let text = cast(&array.slice(row, 1), &DataType::Utf8).unwrap();
            format!("{:?}", text.as_string::<i32>().value(0))
        }
        _ => {
            let format = FormatOptions::default().with_null("NULL");
            let format = ArrayFormatter::try_new(array, &format).unwrap();
            format.value(row).to_string()
        }
    }
}
