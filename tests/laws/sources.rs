//! Sessions: the reference, and ours over every source with every setting.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Schema, SchemaRef,
};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::config::Dialect;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Analyzer, Optimizer, OptimizerRule};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serrate::datafusion;
use serrate::io::nrt::{self, WriteOptions};
use serrate::table::RaggedTable;

use crate::tables::{Table, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Memory,
    Arrow,
    Parquet,
    Nrt,
}

/// A way to run statements.
#[derive(Clone, Debug)]
pub struct Setup {
    pub source: Source,
    pub files: usize,
    pub partitions: usize,
    pub batch: usize,
    pub parquet_lists: bool,
    pub pushdown_filters: bool,
    /// A rule of ours that is switched off.
    pub rule: Option<String>,
}

impl Setup {
    pub fn random(random: &mut ChaCha8Rng, plain: bool, rules: &[String]) -> Self {
        let sources =
            [Source::Memory, Source::Arrow, Source::Parquet, Source::Parquet, Source::Nrt];
        let n = if plain { 5 } else { 4 };
        let source = sources[random.random_range(0..n)];
        let rule = (!rules.is_empty() && random.random_range(0..2) == 0)
            .then(|| rules[random.random_range(0..rules.len())].clone());
        Self {
            source: if plain && random.random_range(0..3) == 0 { Source::Nrt } else { source },
            files: [1, 3][random.random_range(0..2)],
            partitions: [1, 2, 4][random.random_range(0..3)],
            batch: [1, 7, 8192][random.random_range(0..3)],
            parquet_lists: random.random_range(0..3) > 0,
            pushdown_filters: random.random_range(0..4) > 0,
            rule,
        }
    }

    /// The settings, as statements.
    fn settings(&self) -> Vec<String> {
        let mut out = vec![
            format!("SET datafusion.execution.batch_size = {}", self.batch),
            format!(
                "SET datafusion.execution.parquet.pushdown_filters = {}",
                self.pushdown_filters
            ),
            format!("SET serrate.parquet_lists = {}", self.parquet_lists),
            // Small files are shared out too.
            "SET datafusion.optimizer.repartition_file_min_size = 0".into(),
        ];
        out.extend(self.rule.iter().map(|rule| format!("SET {rule} = false")));
        out
    }

    /// What makes this session over tables `CREATE TABLE` has made under their names.
    pub fn script(&self, tables: &[&Table]) -> String {
        let mut out = format!(
            "-- {self}\nSET datafusion.execution.target_partitions = {};\n",
            self.partitions
        );
        for setting in self.settings() {
            out.push_str(&format!("{setting};\n"));
        }
        let extension = match self.source {
            Source::Memory => return out,
            Source::Arrow => "arrow",
            Source::Parquet => "parquet",
            Source::Nrt => "nrt",
        };
        for table in tables {
            let name = &table.name;
            for (i, (from, n)) in cuts(table.rows.num_rows(), self.files).into_iter().enumerate() {
                let options = match self.source {
                    Source::Parquet => " OPTIONS (max_row_group_size 5)",
                    _ => "",
                };
                out.push_str(&format!(
                    "COPY (SELECT * FROM {name} LIMIT {n} OFFSET {from}) TO '{name}/{i}.{extension}'{options};\n"
                ));
            }
            out.push_str(&format!(
                "DROP TABLE {name}; CREATE EXTERNAL TABLE {name} STORED AS {} LOCATION '{name}/';\n",
                extension.to_uppercase()
            ));
        }
        out
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} x{} partitions={} batch={}",
            self.source, self.files, self.partitions, self.batch
        )?;
        if self.source == Source::Parquet {
            write!(f, " lists={} pushdown={}", self.parquet_lists, self.pushdown_filters)?;
        }
        if let Some(rule) = &self.rule {
            write!(f, " without {rule}")?;
        }
        Ok(())
    }
}

/// Windows of rows of about equal size.
fn cuts(rows: usize, parts: usize) -> Vec<(usize, usize)> {
    let each = rows.div_ceil(parts).max(1);
    (0..parts).map(|i| (i * each).min(rows)).map(|from| (from, each.min(rows - from))).collect()
}

fn register_names(ctx: &SessionContext) {
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

pub fn register(
    ctx: &SessionContext,
    name: &str,
    partitions: Vec<Vec<RecordBatch>>,
    rows: &RecordBatch,
) {
    let table = MemTable::try_new(rows.schema(), partitions).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

/// Plain DataFusion over tables in memory: our functions and syntax, none of our rules, and of its own
/// those alone without which there is no plan. Aggregates of floats are those of a session of ours: its own
/// depend on the cut, and these are compared to the bit.
pub fn reference(world: &World) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1).with_information_schema(true);
    config.options_mut().sql_parser.dialect = Dialect::DuckDB;
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    let mut builder = serrate::sql::configure(builder);
    *builder.analyzer() = Some(Analyzer::new());
    *builder.analyzer_rules() = None;
    *builder.optimizer_rules() = None;
    *builder.physical_optimizer_rules() = None;
    let needed: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        // NOT IN over a list with NULL is right with keys alone.
        Arc::new(ExtractEquijoinPredicate::new()),
    ];
    *builder.optimizer() = Some(Optimizer::with_rules(needed));
    *builder.physical_optimizers() = Some(needed_physical());
    let mut ctx = SessionContext::new_with_state(builder.build());
    serrate::sql::register_functions(&mut ctx).unwrap();
    serrate::sql::register_operators(&ctx).unwrap();
    for aggregate in serrate::sql::session().state_ref().read().aggregate_functions().values() {
        ctx.register_udaf(aggregate.as_ref().clone());
    }
    register_names(&ctx);
    for table in &world.tables {
        register(&ctx, &table.name, vec![vec![table.rows.clone()]], &table.rows);
    }
    ctx
}

/// Sorts and partitions that operators ask for, and the check that they have them.
fn needed_physical() -> PhysicalOptimizer {
    let needed =
        ["OutputRequirements", "EnsureRequirements", "LambdaParameters", "SanityCheckPlan"];
    let all = PhysicalOptimizer::new().rules;
    let rules = all.into_iter().filter(|r| needed.contains(&r.name())).collect();
    PhysicalOptimizer::with_rules(rules)
}

/// The rules of ours that have a switch.
pub async fn rules() -> Vec<String> {
    let ctx = serrate::sql::session();
    let sql = "SELECT name FROM information_schema.df_settings WHERE name LIKE 'serrate.rule.%' ORDER BY name";
    let rows = run(&ctx, sql).await.unwrap().rows;
    rows.iter().map(|row| row[0].trim_matches('"').to_string()).collect()
}

/// Ours, over files in a folder or tables in memory.
pub async fn session(world: &World, setup: &Setup, folder: &Path) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(setup.partitions);
    let ctx = serrate::sql::session_with(config);
    register_names(&ctx);
    for setting in setup.settings() {
        run(&ctx, &setting).await.unwrap_or_else(|e| panic!("{setting}: {e}"));
    }
    for table in &world.tables {
        let rows = &table.rows;
        if setup.source == Source::Memory {
            let parts = cuts(rows.num_rows(), setup.files);
            let batches = |(from, n): (usize, usize)| -> Vec<RecordBatch> {
                (0..n)
                    .step_by(setup.batch.min(n.max(1)))
                    .map(|at| rows.slice(from + at, setup.batch.min(n - at)))
                    .collect()
            };
            register(&ctx, &table.name, parts.into_iter().map(batches).collect(), rows);
            continue;
        }
        let name = format!("{:?}{}{}", setup.source, setup.files, table.name).to_lowercase();
        let at = folder.join(name);
        if !at.exists() {
            std::fs::create_dir_all(&at).unwrap();
            for (i, (from, n)) in cuts(rows.num_rows(), setup.files).into_iter().enumerate() {
                write(setup.source, &at, i, &rows.slice(from, n));
            }
        }
        let create = format!(
            "CREATE EXTERNAL TABLE {} STORED AS {} LOCATION '{}/'",
            table.name,
            format!("{:?}", setup.source).to_uppercase(),
            at.display()
        );
        run(&ctx, &create).await.unwrap_or_else(|e| panic!("{create}: {e}"));
    }
    ctx
}

fn write(source: Source, folder: &Path, number: usize, rows: &RecordBatch) {
    let file = |extension: &str| {
        std::fs::File::create(folder.join(format!("{number}.{extension}"))).unwrap()
    };
    match source {
        Source::Memory => {}
        Source::Arrow => {
            let mut writer = FileWriter::try_new(file("arrow"), &rows.schema()).unwrap();
            // Two batches a file.
            let half = rows.num_rows() / 2;
            writer.write(&whole(&rows.slice(0, half))).unwrap();
            writer.write(&whole(&rows.slice(half, rows.num_rows() - half))).unwrap();
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

/// A slice as a batch of its own.
fn whole(rows: &RecordBatch) -> RecordBatch {
    concat_batches(&rows.schema(), [rows]).unwrap()
}

/// Rows as text, values to the bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub schema: SchemaRef,
    pub rows: Vec<Vec<String>>,
    pub batches: Vec<RecordBatch>,
}

/// Runs a statement to its rows, or to its error; a panic is one that says so.
pub async fn run(ctx: &SessionContext, sql: &str) -> Result<Rows, String> {
    let (ctx, text) = (ctx.clone(), sql.to_string());
    let task = tokio::spawn(async move {
        let frame = serrate::sql::sql(&ctx, &text).await.map_err(|e| e.strip_backtrace())?;
        let schema = Arc::clone(frame.schema().inner());
        let batches = frame.collect().await.map_err(|e| e.strip_backtrace())?;
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                rows.push(batch.columns().iter().map(|c| cell(c, row)).collect());
            }
        }
        Ok::<_, String>(Rows { schema, rows, batches })
    });
    match task.await {
        Ok(answer) => answer,
        Err(e) => Err(format!("panic: {e}")),
    }
}

/// A value as text: numbers of all widths alike, floats to the bit but for the bits of NaN.
fn cell(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".into();
    }
    let list = |inner: ArrayRef| {
        let values: Vec<_> = (0..inner.len()).map(|i| cell(&inner, i)).collect();
        format!("[{}]", values.join(", "))
    };
    match array.data_type() {
        DataType::List(_) => list(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(row)),
        DataType::Struct(_) => {
            let s = array.as_struct();
            let values: Vec<_> = s.columns().iter().map(|c| cell(c, row)).collect();
            format!("{{{}}}", values.join(", "))
        }
        DataType::Dictionary(_, values) => cell(&cast(&array.slice(row, 1), values).unwrap(), 0),
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
