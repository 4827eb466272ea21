//! [`SplitScan`]: divides a scan between DataFusion's scan and Serrate's list decoder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction};
use parquet::arrow::RowNumber;
use serrate_core::internal::build_record_batch;

use crate::io::parquet::lists::DecodedParts;
use crate::sql::base::measured_lists::find_measured_list;

const ROW: &str = "__serrate_row";

#[derive(Clone, Debug)]
pub(super) struct ListColumn {
    pub(super) table: usize,
    /// Index of the column among the top-level columns of the file.
    pub(super) root: usize,
    pub(super) field: FieldRef,
    /// The field of this column in the table's schema. It has the same type as `field`, the field
    /// of the column in the file.
    pub(super) declared: FieldRef,
    pub(super) parts: DecodedParts,
}

#[derive(Debug)]
enum OutputColumn {
    /// The output column is the column of DataFusion's scan that has this index.
    Given(usize),
    /// The output column is an expression over columns of DataFusion's scan and decoded lists.
    Of(Arc<dyn PhysicalExpr>),
}

/// A scan of one file in two steps: DataFusion's scan reads the rows without the lists, then the
/// list decoder adds the lists of these rows. The condition on lists and the output columns are
/// computed from both.
#[derive(Debug)]
pub(super) struct SplitScan {
    /// DataFusion's scan, with the number of each row as its last column.
    pub(super) given: ParquetSource,
    /// The columns that the list decoder reads. Those that `condition` uses come first.
    pub(super) columns: Vec<ListColumn>,
    /// Number of columns at the start of `columns` that `condition` uses.
    pub(super) tested: usize,
    /// The condition on lists, if any. Its column indices count the columns of DataFusion's scan
    /// first, then the lists that the condition reads.
    condition: Option<Arc<dyn PhysicalExpr>>,
    outputs: Vec<OutputColumn>,
    schema: SchemaRef,
    given_schema: SchemaRef,
}

impl SplitScan {
    /// Splits a scan between DataFusion and the list decoder, which reads the columns `ours`.
    /// Returns `None` if DataFusion must read all columns, for example because one expression uses
    /// both a list and `input_file_name()`.
    pub(super) fn new(
        stock: &ParquetSource,
        mut ours: Vec<ListColumn>,
        batch_size: usize,
    ) -> Result<Option<Self>> {
        let Some(projection) = stock.projection() else { return Ok(None) };
        let table = stock.table_schema();
        let mut asked = ScanExpressions::new(ours.iter().map(|c| c.table).collect());
        let FilterParts { theirs, tests } = FilterParts::new(stock, &asked);
        let of_tests: BTreeSet<usize> =
            tests.iter().flat_map(collect_columns).map(|c| c.index()).collect();
        ours.sort_by_key(|c| (!of_tests.contains(&c.table), c.table));
        let tested = ours.iter().filter(|c| of_tests.contains(&c.table)).count();

        let mut outputs = Vec::new();
        for e in projection {
            if asked.uses_lists(&e.expr) {
                asked.add_other_columns(&e.expr);
                outputs.push(OutputColumn::Of(Arc::clone(&e.expr)));
            } else {
                outputs.push(OutputColumn::Given(asked.add(&e.expr, &e.alias)));
            }
        }
        for test in &tests {
            asked.add_other_columns(test);
        }
        let row = Column::new(ROW, table.table_schema().fields().len());
        asked.exprs.push(ProjectionExpr::new(Arc::new(row), ROW));
        // Functions such as `input_file_name()` have a value only inside DataFusion's scan, so no
        // expression over decoded lists or condition on lists can contain them. A table with a
        // column that has the name of the row numbers, `ROW`, cannot be split either.
        let only_there = outputs.iter().any(|o| matches!(o, OutputColumn::Of(e) if is_per_file(e)));
        if only_there || tests.iter().any(is_per_file) || table.table_schema().index_of(ROW).is_ok()
        {
            return Ok(None);
        }

        let mut places = asked.places;
        for (i, column) in ours.iter().enumerate() {
            places.insert(column.table, asked.exprs.len() + i);
        }
        let moved = |e: Arc<dyn PhysicalExpr>| move_columns(e, &places);
        let outputs = outputs
            .into_iter()
            .map(|o| match o {
                OutputColumn::Of(e) => moved(e).map(OutputColumn::Of),
                given => Ok(given),
            })
            .collect::<Result<Vec<_>>>()?;
        let tests = tests.into_iter().map(moved).collect::<Result<Vec<_>>>()?;
        let numbered = add_row_numbers(table);
        let asked = ProjectionExprs::new(asked.exprs);
        let given_schema = Arc::new(asked.project_schema(numbered.table_schema())?);
        let theirs = (!theirs.is_empty()).then(|| conjunction(theirs));
        let rows = find_given_rows(&given_schema, batch_size);
        let Some(given) = read_columns(stock, numbered, &asked, theirs, rows)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            given,
            columns: ours,
            tested,
            condition: (!tests.is_empty()).then(|| conjunction(tests)),
            outputs,
            schema: Arc::new(projection.project_schema(table.table_schema())?),
            given_schema,
        }))
    }

    pub(super) fn condition(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        self.condition.as_ref()
    }

    /// Appends `lists`, the decoded lists of the first [`columns`](Self::columns), to `given`, a
    /// batch of DataFusion's scan.
    pub(super) fn append_lists(
        &self,
        given: &RecordBatch,
        lists: &[ArrayRef],
    ) -> Result<RecordBatch> {
        let fields = self.given_schema.fields().iter().cloned();
        let declared = self.columns.iter().take(lists.len()).map(|c| Arc::clone(&c.declared));
        let schema = Schema::new(fields.chain(declared).collect::<Vec<_>>());
        let columns = given.columns().iter().chain(lists).cloned().collect();
        Ok(build_record_batch(Arc::new(schema), columns, given.num_rows())?)
    }

    /// Computes the output columns from a batch of DataFusion's scan with all decoded lists
    /// appended.
    pub(super) fn compute_output(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = self.outputs.iter().map(|o| match o {
            OutputColumn::Given(at) => Ok(Arc::clone(batch.column(*at))),
            OutputColumn::Of(e) => e.evaluate(batch)?.into_array(rows),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(build_record_batch(Arc::clone(&self.schema), columns, rows)?)
    }
}

/// Returns the number of rows to request from DataFusion's scan at once: `batch_size` if `schema`
/// has nested columns, whose rows may be large, otherwise [`MOST_ROWS`] or [`TEXT_ROWS`]. Larger
/// requests save work: a page of lists on the boundary of two requests is decoded twice.
fn find_given_rows(schema: &Schema, batch_size: usize) -> usize {
    let fields = schema.fields();
    if fields.iter().any(|f| f.data_type().is_nested()) {
        return batch_size;
    }
    let numbers = fields.iter().all(|f| f.data_type().is_primitive());
    if numbers { MOST_ROWS } else { TEXT_ROWS }
}

/// Number of rows to request from DataFusion's scan at once: [`MOST_ROWS`] if all its columns are
/// primitive, and [`TEXT_ROWS`] if one is not, such as a string.
const MOST_ROWS: usize = 1 << 16;
const TEXT_ROWS: usize = 1 << 13;

/// The conditions of a filter, divided between DataFusion's scan and Serrate.
struct FilterParts {
    /// Conditions that DataFusion's scan evaluates.
    theirs: Vec<Arc<dyn PhysicalExpr>>,
    /// Conditions on decoded lists.
    tests: Vec<Arc<dyn PhysicalExpr>>,
}

impl FilterParts {
    fn new(stock: &ParquetSource, asked: &ScanExpressions) -> Self {
        let (mut theirs, mut tests) = (Vec::new(), Vec::new());
        let tested = stock.table_parquet_options().global.pushdown_filters;
        if let Some(filter) = stock.filter() {
            for condition in split_conjunction(&filter) {
                let is_test = tested && asked.uses_lists(condition);
                let place = if is_test { &mut tests } else { &mut theirs };
                place.push(Arc::clone(condition));
            }
        }
        Self { theirs, tests }
    }
}

/// The expressions to request from DataFusion's scan, without repeated columns.
struct ScanExpressions {
    /// Indices in the table of the columns that the list decoder reads.
    lists: BTreeSet<usize>,
    exprs: Vec<ProjectionExpr>,
    /// For each column that expressions over lists also use: its index in the table, and its index
    /// in `exprs`.
    places: BTreeMap<usize, usize>,
}

impl ScanExpressions {
    fn new(lists: BTreeSet<usize>) -> Self {
        Self { lists, exprs: Vec::new(), places: BTreeMap::new() }
    }

    fn uses_lists(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        collect_columns(expr).into_iter().any(|c| self.lists.contains(&c.index()))
    }

    /// Adds the columns that `expr` uses, except those that the list decoder reads.
    fn add_other_columns(&mut self, expr: &Arc<dyn PhysicalExpr>) {
        for column in collect_columns(expr) {
            if !self.lists.contains(&column.index()) {
                let name = column.name().to_owned();
                let number = column.index();
                let place = self.add(&(Arc::new(column) as _), &name);
                self.places.insert(number, place);
            }
        }
    }

    fn add(&mut self, expr: &Arc<dyn PhysicalExpr>, alias: &str) -> usize {
        // A column that is used twice is requested once. A call that is used twice is requested
        // twice, because two calls of `random()` have different values.
        let column = expr.downcast_ref::<Column>();
        let same = |e: &ProjectionExpr| column.is_some() && e.expr.downcast_ref() == column;
        let known = self.exprs.iter().position(same);
        known.unwrap_or_else(|| {
            let alias = format!("{alias} ({})", self.exprs.len());
            self.exprs.push(ProjectionExpr::new(Arc::clone(expr), alias));
            self.exprs.len() - 1
        })
    }
}

/// Replaces the index of each column in an expression with the new index that `places` has for it.
fn move_columns(
    e: Arc<dyn PhysicalExpr>,
    places: &BTreeMap<usize, usize>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = e.transform_up(|e| {
        let Some(column) = e.downcast_ref::<Column>() else { return Ok(Transformed::no(e)) };
        let place = places.get(&column.index()).copied().unwrap_or(column.index());
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as _))
    })?;
    Ok(moved.data)
}

/// Whether an expression calls a function that DataFusion's scan evaluates for each file, such as
/// `input_file_name()`.
fn is_per_file(e: &Arc<dyn PhysicalExpr>) -> bool {
    let answers = ["input_file_name", "file_row_index"];
    let found = e.exists(|e| {
        let call = e.downcast_ref::<ScalarFunctionExpr>();
        Ok(call.is_some_and(|call| answers.contains(&call.fun().name())))
    });
    found.unwrap_or(true)
}

fn add_row_numbers(table: &TableSchema) -> TableSchema {
    let row = Field::new(ROW, DataType::Int64, false).with_extension_type(RowNumber);
    TableSchema::builder(Arc::clone(table.file_schema()))
        .with_table_partition_cols(table.table_partition_cols().clone())
        .with_virtual_columns(vec![Arc::new(row)])
        .build()
}

/// Returns a scan like `stock` that returns the columns `asked` and evaluates `condition`, or
/// `None` if DataFusion refuses this projection.
fn read_columns(
    stock: &ParquetSource,
    table: TableSchema,
    asked: &ProjectionExprs,
    condition: Option<Arc<dyn PhysicalExpr>>,
    batch_size: usize,
) -> Result<Option<ParquetSource>> {
    let mut source =
        ParquetSource::new(table).with_table_parquet_options(stock.table_parquet_options().clone());
    if let Some(factory) = stock.parquet_file_reader_factory() {
        source = source.with_parquet_file_reader_factory(Arc::clone(factory));
    }
    if let Some(condition) = condition {
        source = source.with_predicate(condition);
    }
    let source = source.try_pushdown_projection(asked)?;
    let source = source.map(|source| source.with_batch_size(batch_size));
    Ok(source.and_then(|source| source.downcast_ref::<ParquetSource>().cloned()))
}

/// Returns the column indices in `lists` whose values the scan `stock` does not use: it uses only
/// the lengths of the lists in these columns.
pub(super) fn find_measured_fields(
    stock: &ParquetSource,
    lists: &BTreeSet<usize>,
) -> BTreeSet<usize> {
    let mut looked_at: BTreeSet<usize> = BTreeSet::new();
    let outputs = stock.projection().into_iter().flatten().map(|e| Arc::clone(&e.expr));
    for e in outputs.chain(stock.filter()) {
        // The closure always returns `Ok`, so the result can be ignored.
        let _ = e.apply(|e| {
            if let Some(column) = e.downcast_ref::<Column>() {
                looked_at.insert(column.index());
            }
            Ok(match find_measured_list(e) {
                Some(_) => TreeNodeRecursion::Jump,
                None => TreeNodeRecursion::Continue,
            })
        });
    }
    lists.difference(&looked_at).copied().collect()
}
