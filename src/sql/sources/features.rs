//! `FROM meds_features('DIR', 'LABELS', ..)`: features for tabular models, computed for each label
//! (a subject and a prediction time).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::sqlparser::ast::{Array, Expr as SqlExpr, FunctionArg};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::range_partitions::{divide_shards, limit_rows, read_ranges, write_limit};
use crate::error::find_original;
use crate::functions::find_local_codes;
use crate::io::features::{FeatureForm, FeatureKey, FeatureSpec, LabelFeatures};
use crate::io::meds::{Labels, Vocabulary};
use crate::io::meds_torch::MedsFolder;
use crate::kernels::between::ClosedEnds;
use crate::sql::base::blocking::run_blocking;
use crate::sql::base::syntax::{split_argument, unquote_text};
use crate::sql::sources::{describe_table, select_columns, to_local_path};

pub(in crate::sql) const NAME: &str = "meds_features";

/// Default windows of `meds_features`. [`AGGREGATES`] are its default aggregates.
const WINDOWS: [&str; 3] = ["30d", "365d", "all"];
pub(crate) const AGGREGATES: [&str; 7] = ["count", "sum", "mean", "min", "max", "last", "slope"];

const SUCH: &str = "meds_features('MEDS', 'labels/', prefixes => ['LAB//', 'DRUG//'], windows => ['30d', 'all'], aggregates => ['count', 'mean'])";

/// Number of labels (a subject and a prediction time each) whose features are computed at a time.
const BLOCK_LABELS: usize = 256;

/// Creates the table for `meds_features`. Named arguments: `codes`, `prefixes`, `vocabulary` (a
/// file or folder of codes), `windows`, `aggregates`, `closed` and `form` (`columns`, `list`,
/// `sparse` or `names`).
pub(in crate::sql) fn make_features_table(args: &[FunctionArg]) -> Result<Arc<dyn TableProvider>> {
    let mut paths = Vec::new();
    let (mut codes, mut prefixes) = (None, None);
    let (mut vocabulary, mut form) = (None, "columns".to_owned());
    let mut closed = ClosedEnds::Right;
    let mut windows: Vec<String> = WINDOWS.map(String::from).to_vec();
    let mut aggregates: Vec<String> = AGGREGATES.map(String::from).to_vec();
    for arg in args {
        let (name, value) = match split_argument(arg) {
            Some((Some(name), value)) => (name, value),
            Some((None, value)) => {
                paths.push(parse_text("the folder or the labels", value)?);
                continue;
            }
            None => return plan_err!("{NAME}: {arg} is not a valid argument; write {SUCH}"),
        };
        match name.as_str() {
            "codes" => codes = Some(parse_texts(&name, value)?),
            "prefixes" => prefixes = Some(parse_texts(&name, value)?),
            "windows" => windows = parse_texts(&name, value)?,
            "aggregates" => aggregates = parse_texts(&name, value)?,
            "vocabulary" => vocabulary = Some(parse_text(&name, value)?),
            "closed" => closed = parse_text(&name, value)?.parse().map_err(explain_error)?,
            "form" => form = parse_text(&name, value)?,
            _ => {
                return plan_err!(
                    "{NAME} has no option {name}; the options are codes, prefixes, vocabulary, windows, aggregates, closed and form"
                );
            }
        }
    }
    let [data, labels] = paths.as_slice() else {
        return plan_err!(
            "{NAME} takes 2 paths as strings (the folder of a MEDS data set, and a file or folder of labels), but the number of paths given is {}; write {SUCH}",
            paths.len()
        );
    };
    let empty = find_empty_selection(codes.as_deref(), prefixes.as_deref());
    if let (None, Some(name)) = (&vocabulary, empty) {
        return plan_err!(
            "{NAME}: {name} is an empty list, so no code is selected; name codes, or omit {name} to select all codes of the data"
        );
    }
    let folder = MedsFolder::open(to_local_path(data)?)?;
    let labels = to_local_path(labels)?;
    let (codes, prefixes) = (codes.unwrap_or_default(), prefixes.unwrap_or_default());
    let keys = find_feature_keys(&folder, codes, prefixes, vocabulary.as_deref())?;
    let parse_all = || -> crate::Result<FeatureSpec> {
        let windows = windows.iter().map(|w| w.parse()).collect::<crate::Result<_>>()?;
        let aggregates = aggregates.iter().map(|a| a.parse()).collect::<crate::Result<_>>()?;
        Ok(FeatureSpec::try_new(keys, windows, aggregates)?.closed(closed))
    };
    let spec = parse_all().map_err(explain_error)?;
    if form == "names" {
        let names = spec.names()?;
        return Ok(Arc::new(MemTable::try_new(names.schema(), vec![vec![names]])?));
    }
    let form: FeatureForm = match form.parse() {
        Ok(form) => form,
        Err(_) => {
            return plan_err!(
                "{NAME}: the form must be 'columns', 'list', 'sparse' or 'names', not {form:?}"
            );
        }
    };
    let tasks = Labels::tasks(&labels)?.into();
    let features = Arc::new(LabelFeatures::new(folder, Labels::read(labels)?, spec));
    let schema = features.schema(form).map_err(explain_error)?;
    Ok(Arc::new(FeaturesTable { features, tasks, form, schema }))
}

/// Returns the name of an option that is an empty list, if the options select no code. Without this
/// check, they would select all codes, as if they were not given.
fn find_empty_selection(
    codes: Option<&[String]>,
    prefixes: Option<&[String]>,
) -> Option<&'static str> {
    match (codes, prefixes) {
        (Some([]), None | Some([])) => Some("codes"),
        (None, Some([])) => Some("prefixes"),
        _ => None,
    }
}

/// Returns the codes of `vocabulary`, then `codes`, then `prefixes`. If none of them is given,
/// returns all codes of the data.
pub(crate) fn find_feature_keys(
    folder: &MedsFolder,
    codes: Vec<String>,
    prefixes: Vec<String>,
    vocabulary: Option<&str>,
) -> crate::Result<Vec<FeatureKey>> {
    let mut keys: Vec<FeatureKey> = match vocabulary {
        Some(path) => FeatureSpec::keys_of(&Vocabulary::read(find_local_codes(path)?)?),
        None if codes.is_empty() && prefixes.is_empty() => {
            FeatureSpec::keys_of(folder.vocabulary()?)
        }
        None => Vec::new(),
    };
    keys.extend(codes.into_iter().map(|code| FeatureKey::Code(code.into())));
    keys.extend(prefixes.into_iter().map(|prefix| FeatureKey::Prefix(prefix.into())));
    Ok(keys)
}

fn explain_error(e: crate::Error) -> DataFusionError {
    DataFusionError::Plan(format!("{NAME}: {e}"))
}

fn parse_text(what: &str, value: &SqlExpr) -> Result<String> {
    match unquote_text(value) {
        Some(text) => Ok(text.to_owned()),
        None => plan_err!("{NAME}: {what} must be a string, not {value}; write {SUCH}"),
    }
}

fn parse_texts(name: &str, value: &SqlExpr) -> Result<Vec<String>> {
    match value {
        SqlExpr::Array(Array { elem, .. }) => elem.iter().map(|e| parse_text(name, e)).collect(),
        value => Ok(vec![parse_text(name, value)?]),
    }
}

/// A table with the features of each label (a subject and a prediction time), in the order of
/// shards, subjects and times. The column `row` has the index of the label among all labels.
#[derive(Debug)]
struct FeaturesTable {
    features: Arc<LabelFeatures>,
    tasks: Arc<[String]>,
    form: FeatureForm,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for FeaturesTable {
    describe_table!(Base);

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = select_columns(projection, &self.schema);
        Ok(DataSourceExec::from_data_source(FeaturesSource {
            features: Arc::clone(&self.features),
            tasks: Arc::clone(&self.tasks),
            form: self.form,
            schema: Arc::new(self.schema.project(&columns)?),
            columns: columns.into(),
            partitions: divide_shards(self.features.num_shards(), state),
            limit,
        }))
    }
}

#[derive(Clone)]
pub(in crate::sql) struct FeaturesSource {
    features: Arc<LabelFeatures>,
    tasks: Arc<[String]>,
    form: FeatureForm,
    columns: Arc<[usize]>,
    schema: SchemaRef,
    partitions: Vec<Range<usize>>,
    limit: Option<usize>,
}

impl FeaturesSource {
    /// Returns the number of labels whose subject is not in the data, or 0 before all data is read.
    pub(in crate::sql) fn num_unknown(&self) -> usize {
        self.features.unknown().unwrap_or(0)
    }

    pub(in crate::sql) fn task_names(&self) -> &[String] {
        &self.tasks
    }
}

impl fmt::Debug for FeaturesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.features.folder().root();
        f.debug_struct("FeaturesSource").field("root", &root).finish_non_exhaustive()
    }
}

impl DataSource for FeaturesSource {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let block = BLOCK_LABELS.min(context.session_config().batch_size());
        let shards = self.partitions.get(partition).cloned().unwrap_or(0..0);
        let (source, limit) = (self.clone(), self.limit);
        let batches = stream::iter(shards)
            .then(move |shard| {
                let source = source.clone();
                async move {
                    let features = Arc::clone(&source.features);
                    let shard = run_blocking(move || features.read(shard).map(Arc::new)).await?;
                    let blocks = shard.blocks(block);
                    Ok::<_, DataFusionError>(stream::iter(blocks).then(move |labels| {
                        let (source, shard) = (source.clone(), Arc::clone(&shard));
                        run_blocking(move || {
                            let rows = shard.features(labels)?;
                            source.features.to_batch(&rows, source.form, &source.columns)
                        })
                    }))
                }
            })
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            limit_rows(batches, limit),
        )))
    }

    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MedsFeatures: folder={}, shards={}, labels={}, features={}, columns={}",
            find_original(self.features.folder().root()).display(),
            self.features.num_shards(),
            self.features.labels().len(),
            self.features.spec().num_features(),
            self.columns.len()
        )?;
        write_limit(f, self.limit)
    }

    read_ranges!(schema, plain);
}
