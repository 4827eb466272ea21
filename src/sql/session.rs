//! [`session()`], and the functions that add its parts to another session.

use std::sync::Arc;

use datafusion::catalog::{
    DynamicFileCatalog, TableFunction, TableFunctionImpl, TableProviderFactory, UrlTableFactory,
};
#[cfg(feature = "serve")]
use datafusion::catalog::{MemoryCatalogProvider, MemorySchemaProvider};
use datafusion::config::{Dialect, ExecutionOptions};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::file_format::arrow::ArrowFormatFactory;
use datafusion::datasource::file_format::csv::CsvFormatFactory;
use datafusion::datasource::file_format::json::JsonFormatFactory;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::registry::MemoryExtensionTypeRegistry;
use datafusion::prelude::{SessionConfig, SessionContext};

#[cfg(feature = "cloud")]
use crate::access;
use crate::config::{SerrateOptions, limit_memory_by_default, set_rule_finder};
use crate::functions::{
    OVER_TIMES, add_operators, all_aggregate, all_higher_order, all_scalar, build_clipped_element,
    build_clipped_slice, build_lazy_lambdas, build_null_subsets, build_shifted_windows,
    build_signed_counts, build_signed_windows, build_typed_lists, exact_aggregates,
    extend_to_times, float_extremes, float_lists, is_for_signed, list_contains, number_lists,
    remove_hidden_values, replaced_aggregates, scalar_functions, takes_unsigned,
};
use crate::sql::exec::memory_pool::ProcessPool;
use crate::sql::exec::stack::DeepPlanner;
use crate::sql::from::nested_values::NestedValuesPlanner;
use crate::sql::from::path_tables::PathTables;
use crate::sql::from::planned_relations::PlannedRelations;
use crate::sql::from::table_function_planner::TableFunctionsPlanner;
use crate::sql::from::vocab::VocabFunction;
use crate::sql::rules::{
    add_analyzer_rules, add_physical_rules, change_logical_rules, find_rule,
    list_last_analyzer_rules, list_last_logical_rules, list_last_physical_rules,
};
use crate::sql::sources::asof::MedsAsOfFunction;
use crate::sql::sources::dok::{DokFormatFactory, DokTableFactory, register_dok_names};
use crate::sql::sources::hidden_files::skip_hidden_files;
use crate::sql::sources::listing::FilesTableFactory;
#[cfg(feature = "cloud")]
use crate::sql::sources::local_copies::fetch_copy;
use crate::sql::sources::meds::MedsFunction;
use crate::sql::sources::nrt::NrtFormatFactory;
use crate::sql::sources::parquet::ParquetFileFormatFactory;
use crate::sql::sources::safetensors::SafetensorsFormatFactory;
#[cfg(feature = "cloud")]
use crate::sql::sources::stores::{SessionStores, open_by_url};
use crate::sql::sources::training::BatchesFormatFactory;
use crate::sql::sources::upload::UploadPlanner;
use crate::sql::sources::whole_file_format::WholeFileFormatFactory;
use crate::sql::statement::columns::position_columns::PositionsPlanner;
use crate::sql::statement::errors::wording::OfStatement;
use crate::sql::statement::parsing::query_texts::parse_query_text;
use crate::sql::statement::replanned::KeptStatements;
use crate::sql::statement::unnest_planner::UnnestPlanner;
use crate::sql::workarounds::guards::failing_statistics::StatisticsPlanner;
use crate::sql::workarounds::types::times::register_wide;

/// Creates a session with everything registered: settings `serrate.*`, functions, operators on
/// lists, file formats, file paths as tables in FROM, extension types.
///
/// It uses the DuckDB dialect, which has lambdas (`lambda v: v + 1`, `v -> v + 1`), `[1, 2]`,
/// `FROM t` for all columns and `//` for integer division. It also accepts `FROM unnest(..)`, which
/// that dialect lacks, but not over a list column of another table in FROM; use `unnest` in SELECT
/// for such a column.
///
/// Run statements with [`sql`](crate::sql::sql), which lists the cases in which DataFusion's
/// `ctx.sql` returns other results, because `ctx.sql` skips the rewrites of a statement's text and
/// syntax tree.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::arrow::array::AsArray;
/// use serrate::arrow::datatypes::Int64Type;
/// use serrate::sql::{session, sql};
/// let ctx = session();
/// let rows = sql(&ctx, "SELECT ragged_sum([[1, 2], [3]])").await?.collect().await?;
/// assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 6);
/// # Ok(())
/// # }
/// ```
pub fn session() -> SessionContext {
    session_with(SessionConfig::new())
}

/// Creates a session like [`session`] from a configuration (target partitions, batch size, and so
/// on).
///
/// It overrides the settings of `config` that Serrate's rewrites and rules depend on, such as
/// `sql_parser.dialect`, `catalog.information_schema` and `execution.parquet.pushdown_filters`.
/// `execution.time_zone` is UTC unless `config` has a zone.
///
/// All sessions of the process share one memory limit (`serrate.memory_limit`), by default 70 % of
/// the memory of the machine or of its control group. At the limit, operators that can spill write
/// to temporary files.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::prelude::SessionConfig;
/// use serrate::sql::session_with;
/// let ctx = session_with(SessionConfig::new().with_target_partitions(1).with_batch_size(1024));
/// assert_eq!(ctx.sql("SELECT ragged_sum([[1, 2], [3]])").await?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn session_with(config: SessionConfig) -> SessionContext {
    new_session_in(config, &find_process_runtime())
}

/// Returns a runtime with the memory pool of the process.
pub(crate) fn find_process_runtime() -> RuntimeEnv {
    limit_memory_by_default();
    RuntimeEnv { memory_pool: ProcessPool::find_shared_pool(), ..RuntimeEnv::default() }
}

/// Creates a session in `runtime` with the settings, tables and views of `base`. Later changes of
/// settings and tables in one of the two sessions do not affect the other, but both share the rows
/// of tables in memory.
///
/// # Errors
/// If a table cannot be registered.
#[cfg(feature = "serve")]
pub(crate) async fn new_session_like(
    base: &SessionContext,
    runtime: &RuntimeEnv,
) -> Result<SessionContext> {
    let mut config = base.copied_config();
    if let Some(kept) = config.get_extension::<KeptStatements>() {
        config.set_extension(Arc::new(kept.copy_views()));
    }
    let ctx = new_session_in(config, runtime);
    for catalog_name in base.catalog_names() {
        let Some(from) = base.catalog(&catalog_name) else { continue };
        if ctx.catalog(&catalog_name).is_none() {
            ctx.register_catalog(&catalog_name, Arc::new(MemoryCatalogProvider::new()));
        }
        let Some(to) = ctx.catalog(&catalog_name) else { continue };
        for schema_name in from.schema_names() {
            let Some(tables) = from.schema(&schema_name) else { continue };
            if to.schema(&schema_name).is_none() {
                to.register_schema(&schema_name, Arc::new(MemorySchemaProvider::new()))?;
            }
            let Some(schema) = to.schema(&schema_name) else { continue };
            for name in tables.table_names() {
                if let Some(table) = tables.table(&name).await? {
                    schema.register_table(name, table)?;
                }
            }
        }
    }
    Ok(ctx)
}

pub(crate) fn new_session_in(config: SessionConfig, runtime: &RuntimeEnv) -> SessionContext {
    let builder = SessionStateBuilder::new()
        .with_config(set_defaults(config))
        .with_runtime_env(Arc::new(runtime.clone()))
        .with_default_features();
    let ctx = SessionContext::new_with_state(configure(builder).build());
    let ctx = add_path_tables(ctx);
    for (name, factory) in ctx.state_ref().write().table_factories_mut() {
        if name != DOK {
            *factory = Arc::new(FilesTableFactory::new(Arc::clone(factory)));
        }
    }
    add_functions(&ctx);
    ctx
}

/// Sets the settings of DataFusion in which Serrate differs.
fn set_defaults(config: SessionConfig) -> SessionConfig {
    let mut config = config
        .with_information_schema(true)
        .set_bool("datafusion.execution.listing_table_ignore_subdirectory", false)
        .set_bool("datafusion.execution.parquet.skip_metadata", false)
        // By default, `SELECT * FROM (SELECT .. ORDER BY x) LIMIT 1` returns an arbitrary row,
        // because the planner drops the sort of a subquery that has no LIMIT.
        .set_bool("datafusion.sql_parser.enable_subquery_sort_elimination", false)
        // Piecewise merge joins lose rows of outer joins:
        // <https://github.com/apache/datafusion/issues/24335>. `own_settings.rs` makes SET refuse
        // the setting. Remove it there and here once the test
        // `stock_piecewise_joins_still_lose_rows` fails.
        .set_bool("datafusion.optimizer.enable_piecewise_merge_join", false)
        // A union keeps the nullability that its inputs had before their subqueries became joins,
        // so DataFusion's check of schemas fails for an aggregation over such a union. The setting
        // can be removed once the test `unions_of_correlated_counts_are_grouped` in
        // `tests/sql/set_operations.rs` passes without it.
        .set_bool("datafusion.execution.skip_physical_aggregate_schema_check", true)
        // Lists take up most of a file. With this setting, the reader of Parquet skips the lists of
        // rows that a condition drops.
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    config.options_mut().sql_parser.dialect = Dialect::DuckDB;
    // The memory pool already leaves memory for the merges of each sort. The default of DataFusion,
    // 10 MiB for each sort, would use up a small memory limit.
    let execution = &mut config.options_mut().execution;
    let stock = ExecutionOptions::default().sort_spill_reservation_bytes;
    if execution.sort_spill_reservation_bytes == stock {
        execution.sort_spill_reservation_bytes = 0;
    }
    // Without a zone in the settings, `now()` and TIMESTAMPTZ have no zone, so AT TIME ZONE reads
    // them as local times.
    config.options_mut().execution.time_zone.get_or_insert_with(|| "UTC".to_owned());
    config
}

/// Adds Serrate's functions, and those that replace functions of DataFusion. The two loops at the
/// end wrap functions that are registered by then, so nothing may be added after them.
fn add_functions(ctx: &SessionContext) {
    for function in all_scalar() {
        ctx.register_udf(function.as_ref().clone());
    }
    for function in all_aggregate() {
        ctx.register_udaf(function.as_ref().clone());
    }
    for function in all_higher_order() {
        ctx.register_higher_order_function(function);
    }
    add_operators(ctx);
    register_dok_names(ctx);
    for function in build_lazy_lambdas() {
        ctx.register_higher_order_function(Arc::new(function));
    }
    let aggregates = float_extremes().into_iter().chain(exact_aggregates());
    for aggregate in aggregates.chain(replaced_aggregates()) {
        ctx.register_udaf(aggregate);
    }
    for name in OVER_TIMES {
        let stock = ctx.state_ref().read().aggregate_functions().get(name).cloned();
        if let Some(stock) = stock {
            ctx.register_udaf(extend_to_times(stock));
        }
    }
    register_wide(ctx);
    let lists = build_null_subsets()
        .into_iter()
        .chain([list_contains(), build_clipped_slice(), build_clipped_element()])
        .chain(build_typed_lists())
        .chain(float_lists());
    let functions = build_signed_counts().into_iter().chain(lists).chain(scalar_functions());
    for function in functions {
        ctx.register_udf(function);
    }
    let functions = ctx.state_ref().read().scalar_functions().clone();
    for function in number_lists(&functions) {
        ctx.register_udf(function);
    }
    for window in build_signed_windows().into_iter().chain(build_shifted_windows()) {
        ctx.register_udwf(window);
    }
    let functions = ctx.state_ref().read().scalar_functions().clone();
    for (name, function) in functions {
        if name == function.name() && is_for_signed(&name) {
            ctx.register_udf(takes_unsigned(function));
        }
    }
    let functions = ctx.state_ref().read().scalar_functions().clone();
    for (_, function) in functions.iter().filter(|(name, function)| *name == function.name()) {
        if let Some(replacement) = remove_hidden_values(function) {
            ctx.register_udf(replacement.as_ref().clone());
        }
    }
}

/// Adds [`PathTables`] to a session, which opens file paths in FROM and reports errors with
/// Serrate's messages.
fn add_path_tables(ctx: SessionContext) -> SessionContext {
    let inner = Arc::clone(ctx.state_ref().read().catalog_list());
    let factory = Arc::new(PathTables { session: DynamicListTableFactory::default() });
    let catalog = DynamicFileCatalog::new(inner, Arc::clone(&factory) as Arc<dyn UrlTableFactory>);
    let state = ctx.into_state_builder().with_catalog_list(Arc::new(catalog)).build();
    let ctx = SessionContext::new_with_state(state);
    factory.session.session_store().with_state(ctx.state_weak_ref());
    ctx
}

/// Adds the parts that must be set while a session is built: settings, planners before DataFusion's
/// own, optimizer rules, file formats and table factories, the table functions `meds`, `meds_asof`
/// and `vocab`, extension types.
///
/// Listings of folders omit names that begin with `.` or `_`. For this, the function wraps the
/// object stores of the builder's runtime, and adds a runtime if there is none.
///
/// Call it before or after `with_default_features`; then call
/// [`register_functions`](crate::sql::register_functions) on the finished session. Unlike
/// [`session`], it does not replace functions of DataFusion: aggregates of floats (`sum`, `avg`,
/// `stddev`, `min`, ..) depend on batches and partitions, and `date_trunc`, `date_bin`,
/// `to_timestamp` and `now()` work in nanoseconds. Run statements with [`sql`](crate::sql::sql).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::execution::SessionStateBuilder;
/// use serrate::datafusion::prelude::SessionContext;
/// use serrate::sql::{configure, register_functions};
/// let builder = SessionStateBuilder::new().with_default_features();
/// let mut ctx = SessionContext::new_with_state(configure(builder).build());
/// register_functions(&mut ctx)?;
/// assert_eq!(ctx.sql("SELECT ragged_count(make_array(1, 2))").await?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn configure(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    set_rule_finder(find_rule);
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    if config.options().extensions.get::<SerrateOptions>().is_none() {
        config.options_mut().extensions.insert(SerrateOptions::default());
    }
    if config.get_extension::<KeptStatements>().is_none() {
        config.set_extension(Arc::new(KeptStatements::default()));
    }
    #[cfg(feature = "cloud")]
    let stores = {
        let known = config.get_extension::<SessionStores>();
        let stores = Arc::new(known.map_or_else(SessionStores::default, |known| known.copy_open()));
        config.set_extension(Arc::clone(&stores));
        stores
    };
    let runtime = builder.runtime_env().get_or_insert_default();
    #[cfg(feature = "cloud")]
    {
        *runtime = open_by_url(runtime, stores);
        access::set_fetch(fetch_copy);
    }
    *runtime = skip_hidden_files(runtime);
    let relations = builder.relation_planners().get_or_insert_default();
    relations.insert(0, Arc::new(PlannedRelations));
    relations.insert(1, Arc::new(NestedValuesPlanner));
    relations.insert(2, Arc::new(UnnestPlanner));
    relations.insert(3, Arc::new(PositionsPlanner));
    relations.insert(4, Arc::new(TableFunctionsPlanner::new(parse_query_text)));
    for rule in &mut builder.analyzer().get_or_insert_default().rules {
        *rule = Arc::new(OfStatement(Arc::clone(rule)));
    }
    add_analyzer_rules(&mut builder.analyzer().get_or_insert_default().rules);
    builder.analyzer_rules().get_or_insert_default().extend(list_last_analyzer_rules());
    change_logical_rules(&mut builder.optimizer().get_or_insert_default().rules);
    builder.optimizer_rules().get_or_insert_default().extend(list_last_logical_rules());
    add_physical_rules(&mut builder.physical_optimizers().get_or_insert_default().rules);
    builder.physical_optimizer_rules().get_or_insert_default().extend(list_last_physical_rules());
    let inner = builder.query_planner().take();
    let planner = StatisticsPlanner { inner: Arc::new(DeepPlanner { inner }) };
    *builder.query_planner() = Some(Arc::new(UploadPlanner { inner: Arc::new(planner) }));
    let functions = builder.table_functions().get_or_insert_default();
    for (name, function) in table_functions() {
        functions.insert(name.into(), Arc::new(TableFunction::new(name.into(), function)));
    }
    let formats = builder.file_formats().get_or_insert_default();
    formats.extend(file_formats());
    // DataFusion uses the first format factory of each extension. So factories of DataFusion in the
    // list are removed here and wrapped. A factory that is added after this function has no effect.
    let mut stock = |extension: &str| {
        let at = formats.iter().position(|f| f.get_ext().eq_ignore_ascii_case(extension));
        at.map(|at| formats.remove(at))
    };
    let found = [stock("parquet"), stock("csv"), stock("json"), stock("arrow")];
    formats.extend(wrap_formats(found));
    let factories = builder.table_factories().get_or_insert_default();
    for extension in file_formats().iter().map(|f| f.get_ext()).chain(JSON_LINES.map(String::from))
    {
        factories.insert(extension.to_uppercase(), new_files_table_factory());
    }
    factories.insert(DOK.into(), Arc::new(DokTableFactory));
    builder.with_extension_type_registry(Arc::new(
        MemoryExtensionTypeRegistry::new_with_canonical_extension_types(),
    ))
}

fn table_functions() -> [(&'static str, Arc<dyn TableFunctionImpl>); 3] {
    [
        ("meds", Arc::new(MedsFunction)),
        ("meds_asof", Arc::new(MedsAsOfFunction)),
        ("vocab", Arc::new(VocabFunction)),
    ]
}

fn new_files_table_factory() -> Arc<dyn TableProviderFactory> {
    Arc::new(FilesTableFactory::new(Arc::new(ListingTableFactory::new())))
}

fn file_formats() -> Vec<Arc<dyn FileFormatFactory>> {
    vec![
        Arc::new(NrtFormatFactory),
        Arc::new(SafetensorsFormatFactory::new()),
        Arc::new(BatchesFormatFactory::new()),
        Arc::new(DokFormatFactory::new()),
    ]
}

const DOK: &str = "DOK";

/// File name extensions, besides `json`, of files with one JSON record per line.
const JSON_LINES: [&str; 2] = ["ndjson", "jsonl"];

/// Wraps the formats for Parquet, CSV, JSON and Arrow so that COPY writes files as Serrate does.
fn wrap_formats(stock: [Option<Arc<dyn FileFormatFactory>>; 4]) -> Vec<Arc<dyn FileFormatFactory>> {
    let [parquet, csv, json, arrow] = stock;
    let parquet = match parquet {
        Some(parquet) => ParquetFileFormatFactory::new(parquet),
        None => <ParquetFileFormatFactory as Default>::default(),
    };
    let csv = csv.unwrap_or_else(|| Arc::new(CsvFormatFactory::new()));
    let json = json.unwrap_or_else(|| Arc::new(JsonFormatFactory::new()));
    let arrow = arrow.unwrap_or_else(|| Arc::new(ArrowFormatFactory::new()));
    let mut all: Vec<Arc<dyn FileFormatFactory>> = vec![Arc::new(parquet)];
    for extension in JSON_LINES {
        let lines = WholeFileFormatFactory::new_with_extension(Arc::clone(&json), extension);
        all.push(Arc::new(lines));
    }
    for inner in [csv, json, arrow] {
        all.push(Arc::new(WholeFileFormatFactory::new(inner)));
    }
    all
}

/// Adds the file formats `.nrt`, `.safetensors`, DOK and BATCHES, and the table functions `meds`,
/// `meds_asof` and `vocab`, to an existing session.
///
/// CREATE EXTERNAL TABLE, COPY and, if enabled, paths in FROM then know the formats.
///
/// For Parquet, CSV, JSON and Arrow, only two things change: COPY to one local file becomes atomic,
/// and a JSON file may be one list of records. The extensions `.ndjson` and `.jsonl` are read as
/// JSON, too. To get rows in source order under LIMIT, and batches limited by their number of
/// leaves (innermost list elements), call [`configure`] as well, which adds the optimizer rules.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::prelude::SessionContext;
/// use serrate::sql::register_formats;
/// let ctx = SessionContext::new();
/// register_formats(&ctx)?;
/// assert!(ctx.state().get_file_format_factory("nrt").is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the session already has one of these formats.
pub fn register_formats(ctx: &SessionContext) -> Result<()> {
    let state = ctx.state_ref();
    let mut state = state.write();
    for format in file_formats() {
        let name = format.get_ext().to_uppercase();
        state.register_file_format(format, false)?;
        state.table_factories_mut().insert(name, new_files_table_factory());
    }
    state.table_factories_mut().insert(DOK.into(), Arc::new(DokTableFactory));
    let stock = ["parquet", "csv", "json", "arrow"].map(|e| state.get_file_format_factory(e));
    for format in wrap_formats(stock) {
        state.register_file_format(format, true)?;
    }
    for extension in JSON_LINES {
        state.table_factories_mut().insert(extension.to_uppercase(), new_files_table_factory());
    }
    for (name, function) in table_functions() {
        state.register_udtf(name, function);
    }
    Ok(())
}
