//! Converts nodes of a physical plan to and from plain values, to run them in another process.
//!
//! [`to_portable`] describes a node or source of Serrate, or returns why it must run in the process
//! of the session. [`from_portable`] creates the node again. `crate::cluster::codec` has the byte
//! format.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{exec_err, internal_datafusion_err, plan_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, ExecutionPlanProperties};

use crate::config::SerrateOptions;
use crate::functions::{
    build_masked_fields, build_span_operations, get_nearest_doubles, get_precision_check,
    list_key_functions, list_range_checks, list_tag_functions,
};
use crate::sql::exec::given_values::GIVEN_VALUE;
use crate::sql::exec::merged_order::MergedOrderExec;
use crate::sql::exec::pacing::PacedExec;
use crate::sql::exec::plain_order::PlainOrderExec;
use crate::sql::exec::stack::DeepStackExec;
use crate::sql::exec::yielding::YieldingExec;
use crate::sql::order::SourceOrderExec;
use crate::sql::pushdown::leaf_limit::BatchSizeExec;
use crate::sql::sources::arrow_scan::ArrowScan;
use crate::sql::sources::csv_scan::CsvScan;
use crate::sql::sources::exact_file_casts::ExactCasts;
use crate::sql::sources::guarded_source::GuardedSource;
use crate::sql::sources::json_scan::JsonScan;
use crate::sql::sources::meds::MedsSource;
use crate::sql::sources::nrt::NrtSource;
use crate::sql::sources::parquet::{ListsSource, correct_received_footers};
use crate::sql::workarounds::expressions::negations::get_negative_function;
use crate::sql::workarounds::expressions::volatile_between::get_between_function;
use crate::sql::workarounds::expressions::volatile_coalesce::get_coalesce_function;
use crate::sql::workarounds::grouping::dependencies::COMPUTED_COLUMN;
use crate::sql::workarounds::grouping::float_keys::build_float_key_function;
use crate::sql::workarounds::guards::conditions::list_held_functions;
use crate::sql::workarounds::inserted_nulls::get_not_null_function;
use crate::sql::workarounds::sorting::sorts::UnorderedExec;
use crate::sql::workarounds::types::coarser_times::count_functions;
use crate::sql::workarounds::types::list_texts::list_text_function;
use crate::sql::workarounds::types::local_times::list_zoned_functions;
use crate::sql::workarounds::types::text_to_decimal_casts::get_plain_numbers_function;
use crate::sql::workarounds::types::text_to_list_casts::list_text_list_functions;
use crate::sql::workarounds::types::text_to_time_casts::list_time_text_functions;
use crate::sql::workarounds::types::times::build_wide_part;

pub(crate) use crate::functions::reads_paths;
pub(crate) use crate::sql::sources::meds::MedsScan;

/// Nodes and sources that must run in the process of the session, each with the reason that
/// messages to the user give. A test in `tests/layers` checks that every other node and source can
/// run on workers.
const STAYS: [(&str, &str); 26] = [
    ("ArrowScan", "the session itself reads Arrow files"),
    ("AsOfSource", "meds_asof() keeps its labels in the memory of the session"),
    (
        "BarrierExec",
        "internal error: the plan still contains a node that only the optimizer uses; please report it",
    ),
    ("CohortSource", "meds_cohort() does not run on workers"),
    (
        "CompactTextsExec",
        "internal error: the plan still contains a node that only sessions use; please report it",
    ),
    (
        "CopiedExec",
        "internal error: the plan still contains a node that only sessions use; please report it",
    ),
    ("CsvScan", "the session itself reads CSV files"),
    ("CutRowsExec", "the session itself repeats long constants for all rows"),
    ("DokSource", "a table STORED AS DOK is kept in the memory of the session"),
    ("ExplodeExec", "ragged_explode() and ragged_axes() do not run on workers"),
    ("FeaturesSource", "meds_features() does not run on workers"),
    (
        "FixedSource",
        "workers cannot read a table in memory under LIMIT or COPY; write the table to a file",
    ),
    (
        "GuardedFilterExec",
        "internal error: the plan still contains a node that only the optimizer uses; please report it",
    ),
    ("JsonScan", "the session itself reads JSON files"),
    ("NestExec", "ragged_nest() needs all rows in one process"),
    ("NewRowsExec", "WITH RECURSIVE runs in the session"),
    ("TableRowsExec", "the session itself creates tables in memory"),
    (
        "OpaqueJoinExec",
        "internal error: the plan still contains a node that only the optimizer uses; please report it",
    ),
    (
        "OpaqueLimitExec",
        "internal error: the plan still contains a node that only the optimizer uses; please report it",
    ),
    ("OrderedSinkExec", "the session itself writes files"),
    ("PlainRowsExec", "WITH RECURSIVE runs in the session"),
    (
        "RowFilterSource",
        "internal error: the plan still contains a source that only the optimizer uses; please report it",
    ),
    ("SharedExec", "a subquery whose rows are used twice runs in the session"),
    ("SortedExec", "the session itself sorts the rows"),
    ("TableSource", "workers cannot read a ragged table in memory; write the table to a file"),
    ("UploadExec", "the session itself writes files"),
];

/// A node or source of a physical plan, described by plain values that can be sent to another
/// process.
#[derive(Debug)]
pub(crate) enum PortableNode {
    BatchSize {
        rows: usize,
    },
    DeepStack,
    /// A scan of files. `carrier` is the same scan with DataFusion's Parquet source, which
    /// DataFusion can encode for files of any format. The other fields restore the original source.
    Files {
        carrier: Arc<dyn ExecutionPlan>,
        reader: PortableReader,
        preserve_order: bool,
    },
    PlainOrder,
    Meds(MedsScan),
    Paced,
    SourceOrder {
        fetch: Option<usize>,
    },
    Unordered,
    Yielding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortableReader {
    Nrt,
    /// DataFusion's Parquet reader, with file names in its errors.
    Parquet,
    /// DataFusion's Parquet reader with Serrate's list decoder, in batches of about `leaves` leaves
    /// (innermost list elements).
    Lists {
        leaves: usize,
    },
}

pub(crate) fn find_reason(name: &str) -> String {
    match STAYS.iter().find(|(known, _)| *known == name) {
        Some((_, reason)) => (*reason).to_owned(),
        None => format!("{name} does not run on workers"),
    }
}

/// Describes a node or source by plain values, or returns the reason why it must run in the process
/// of the session and not on a worker.
pub(crate) fn to_portable(
    node: &Arc<dyn ExecutionPlan>,
) -> std::result::Result<PortableNode, String> {
    if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        return convert_source_to_portable(scan.data_source());
    }
    if let Some(sized) = node.downcast_ref::<BatchSizeExec>() {
        return Ok(PortableNode::BatchSize { rows: sized.batch_rows() });
    }
    if let Some(order) = node.downcast_ref::<SourceOrderExec>() {
        return Ok(PortableNode::SourceOrder { fetch: order.fetch() });
    }
    if node.is::<DeepStackExec>() {
        Ok(PortableNode::DeepStack)
    } else if node.is::<PlainOrderExec>() || node.is::<MergedOrderExec>() {
        // A `MergedOrderExec` hides orders that a merge of partitions breaks. A worker merges no
        // partitions, so a `PlainOrderExec` can replace this node.
        Ok(PortableNode::PlainOrder)
    } else if node.is::<PacedExec>() {
        Ok(PortableNode::Paced)
    } else if node.is::<UnorderedExec>() {
        Ok(PortableNode::Unordered)
    } else if node.is::<YieldingExec>() {
        Ok(PortableNode::Yielding)
    } else {
        Err(find_reason(node.name()))
    }
}

fn convert_source_to_portable(
    source: &Arc<dyn DataSource>,
) -> std::result::Result<PortableNode, String> {
    if let Some(files) = source.downcast_ref::<FileScanConfig>() {
        return convert_files_to_portable(files);
    }
    if let Some(meds) = source.downcast_ref::<MedsSource>() {
        return Ok(PortableNode::Meds(meds.to_scan().map_err(|e| e.to_string())?));
    }
    Err(find_reason(find_source_name(source)))
}

fn find_source_name(source: &Arc<dyn DataSource>) -> &'static str {
    use crate::sql::order::FixedSource;
    use crate::sql::sources::asof::AsOfSource;
    use crate::sql::sources::cohort::CohortSource;
    use crate::sql::sources::dok::DokSource;
    use crate::sql::sources::features::FeaturesSource;
    use crate::sql::sources::table_provider::TableSource;
    if source.is::<FixedSource>() {
        "FixedSource"
    } else if source.is::<AsOfSource>() {
        "AsOfSource"
    } else if source.is::<CohortSource>() {
        "CohortSource"
    } else if source.is::<FeaturesSource>() {
        "FeaturesSource"
    } else if source.is::<DokSource>() {
        "DokSource"
    } else if source.is::<TableSource>() {
        "TableSource"
    } else {
        "a source of another library"
    }
}

/// Returns the source that a worker receives in place of `source`, and the reader with which the
/// worker replaces it. The error is the reason why the session must run the scan.
fn find_portable_source(
    source: &Arc<dyn FileSource>,
) -> std::result::Result<(Arc<dyn FileSource>, PortableReader), String> {
    if let Some(nrt) = source.downcast_ref::<NrtSource>() {
        return Ok((make_nrt_carrier(nrt)?, PortableReader::Nrt));
    }
    if let Some(lists) = source.downcast_ref::<ListsSource>() {
        if lists.has_windows() {
            return Err(
                "workers cannot skip rows in files for an OFFSET, so the session runs the scan"
                    .into(),
            );
        }
        let stock: Arc<dyn FileSource> = Arc::new(lists.stock().clone());
        return Ok((stock, PortableReader::Lists { leaves: lists.leaves() }));
    }
    if source.is::<ParquetSource>() {
        return Ok((Arc::clone(source), PortableReader::Parquet));
    }
    Err(if source.is::<ArrowScan>() {
        find_reason("ArrowScan")
    } else if source.is::<CsvScan>() {
        find_reason("CsvScan")
    } else if source.is::<JsonScan>() {
        find_reason("JsonScan")
    } else {
        format!(
            "workers cannot read files of type {}, so the session reads these files",
            source.file_type()
        )
    })
}

/// Returns a Parquet source with the columns and the filter of an `.nrt` source, because DataFusion
/// encodes only its own sources. The error is the reason why the session must run the scan.
fn make_nrt_carrier(nrt: &NrtSource) -> std::result::Result<Arc<dyn FileSource>, String> {
    let mut carrier = ParquetSource::new(nrt.table_schema().clone());
    if let Some(filter) = nrt.filter() {
        carrier = carrier.with_predicate(filter);
    }
    let Some(projection) = nrt.projection() else {
        return Err(
            "an .nrt scan does not list the columns to read, so the session runs the scan".into()
        );
    };
    match carrier.try_pushdown_projection(projection) {
        Ok(Some(carrier)) => Ok(carrier),
        _ => Err(
            "the selected columns of the .nrt scan cannot be sent to workers, so the session runs the scan"
                .into(),
        ),
    }
}

fn convert_files_to_portable(files: &FileScanConfig) -> std::result::Result<PortableNode, String> {
    check_files(files)?;
    let source = match files.file_source().downcast_ref::<GuardedSource>() {
        Some(guarded) => guarded.inner_source(),
        None => files.file_source(),
    };
    let (stock, reader) = find_portable_source(source)?;
    if let Some(parquet) = stock.downcast_ref::<ParquetSource>()
        && is_reordered(parquet)
    {
        return Err(
            "the scan reorders row groups for ORDER BY with LIMIT, which workers do not support, so the session runs the scan"
                .into(),
        );
    }
    let mut carrier = files.clone();
    carrier.file_source = stock;
    carrier.expr_adapter_factory = None;
    Ok(PortableNode::Files {
        carrier: DataSourceExec::from_data_source(carrier),
        reader,
        preserve_order: files.preserve_order,
    })
}

/// Checks that workers can run a scan: workers read only local files, and DataFusion's encoding of
/// plans drops some properties of scans. The error is the reason why the session must run the scan.
fn check_files(files: &FileScanConfig) -> std::result::Result<(), String> {
    if files.object_store_url != ObjectStoreUrl::local_filesystem() {
        return Err(format!(
            "{} is not a local file system, and workers read only local files, so the session reads these files",
            files.object_store_url
        ));
    }
    if !files.file_source().table_schema().virtual_columns().is_empty() {
        return Err(
            "the scan returns row numbers, which workers do not support, so the session runs the scan"
                .into(),
        );
    }
    if !ExactCasts::is_known(files) {
        return Err(
            "the scan has an expression adapter of another library, which workers do not support, so the session runs the scan"
                .into(),
        );
    }
    if files.limit.is_some_and(|limit| u32::try_from(limit).is_err()) {
        return Err("the LIMIT of the scan exceeds 2^32 - 1, the maximum for workers, so the session runs the scan".into());
    }
    if files.file_groups.iter().flat_map(FileGroup::iter).any(|file| !file.extensions.is_empty()) {
        return Err(
            "workers cannot skip rows in files for an OFFSET, so the session runs the scan".into(),
        );
    }
    Ok(())
}

/// Whether a scan reorders row groups. This is read from the display text of the source, because no
/// method of the source returns it.
fn is_reordered(source: &ParquetSource) -> bool {
    struct SourceText<'a>(&'a ParquetSource);
    impl std::fmt::Display for SourceText<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt_extra(DisplayFormatType::Default, f)
        }
    }
    let shown = SourceText(source).to_string();
    shown.contains("sort_order_for_reorder=") || shown.contains("reverse_row_groups=true")
}

/// Creates a node from its description and its inputs.
///
/// # Errors
/// If the number of inputs or a value is invalid, or a folder has changed since the query was
/// planned.
pub(crate) fn from_portable(
    portable: PortableNode,
    inputs: &[Arc<dyn ExecutionPlan>],
    options: &SerrateOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    match portable {
        PortableNode::Files { carrier, reader, preserve_order } => {
            check_no_input(inputs)?;
            build_portable_files(&carrier, reader, preserve_order, options)
        }
        PortableNode::Meds(scan) => {
            check_no_input(inputs)?;
            Ok(DataSourceExec::from_data_source(MedsSource::from_scan(scan)?))
        }
        node => {
            let [input] = inputs else {
                return plan_err!(
                    "a node of the received plan has {} inputs instead of 1; use the same build of Serrate for the session and its workers",
                    inputs.len()
                );
            };
            let input = Arc::clone(input);
            Ok(match node {
                PortableNode::BatchSize { rows: 0 } => {
                    return plan_err!(
                        "the batch size in the received plan is 0 rows instead of at least 1; use the same build of Serrate for the session and its workers"
                    );
                }
                PortableNode::BatchSize { rows } => Arc::new(BatchSizeExec::new(input, rows)),
                PortableNode::DeepStack => Arc::new(DeepStackExec::new(input)),
                PortableNode::PlainOrder => Arc::new(PlainOrderExec::new(input)),
                PortableNode::Paced => Arc::new(PacedExec::new(input)),
                PortableNode::SourceOrder { fetch } => Arc::new(SourceOrderExec::new(input, fetch)),
                PortableNode::Unordered => Arc::new(UnorderedExec::new(input)),
                PortableNode::Yielding => Arc::new(YieldingExec::new(input)),
                PortableNode::Files { .. } | PortableNode::Meds(_) => {
                    return plan_err!(
                        "a scan of the received plan has 1 input instead of 0; use the same build of Serrate for the session and its workers"
                    );
                }
            })
        }
    }
}

fn check_no_input(inputs: &[Arc<dyn ExecutionPlan>]) -> Result<()> {
    match inputs {
        [] => Ok(()),
        _ => plan_err!(
            "a scan of the received plan has {} inputs instead of 0; use the same build of Serrate for the session and its workers",
            inputs.len()
        ),
    }
}

fn build_portable_files(
    carrier: &Arc<dyn ExecutionPlan>,
    reader: PortableReader,
    preserve_order: bool,
    options: &SerrateOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let wrong = || {
        internal_datafusion_err!(
            "a received scan of files is not encoded as a Parquet scan; use the same build of Serrate for the session and its workers"
        )
    };
    let scan = carrier.downcast_ref::<DataSourceExec>().ok_or_else(wrong)?;
    let files = scan.data_source().downcast_ref::<FileScanConfig>().ok_or_else(wrong)?;
    let stock = files.file_source().downcast_ref::<ParquetSource>().ok_or_else(wrong)?;
    let source: Arc<dyn FileSource> = match reader {
        PortableReader::Nrt => build_nrt_source(stock, options)?,
        PortableReader::Parquet => {
            Arc::new(GuardedSource::new(Arc::new(correct_received_footers(stock))))
        }
        PortableReader::Lists { leaves: 0 } => {
            return plan_err!(
                "the batch size in the received plan is 0 leaves instead of at least 1; use the same build of Serrate for the session and its workers"
            );
        }
        PortableReader::Lists { leaves } => {
            match ListsSource::new(correct_received_footers(stock), leaves, Vec::new()) {
                Some(lists) => Arc::new(GuardedSource::new(Arc::new(lists))),
                None => {
                    return plan_err!(
                        "a received scan of Parquet files must read at least one list column, but it reads none; use the same build of Serrate for the session and its workers"
                    );
                }
            }
        }
    };
    let mut files = files.clone();
    if reader != PortableReader::Nrt {
        files.expr_adapter_factory = Some(ExactCasts::new_shared_factory());
    }
    files.file_source = source;
    files.preserve_order = preserve_order;
    Ok(DataSourceExec::from_data_source(files))
}

fn build_nrt_source(
    carrier: &ParquetSource,
    options: &SerrateOptions,
) -> Result<Arc<dyn FileSource>> {
    let source = NrtSource::new(carrier.table_schema().clone(), options.clone());
    let mut source: Arc<dyn FileSource> = Arc::new(source);
    if let Some(filter) = carrier.filter() {
        let filters: Vec<_> = split_conjunction(&filter).into_iter().map(Arc::clone).collect();
        let taken = filters.len();
        let answer = source.try_pushdown_filters(filters, &Default::default())?;
        let all = answer.filters.len() == taken
            && answer
                .filters
                .iter()
                .all(|f| matches!(f, datafusion::physical_plan::filter_pushdown::PushedDown::Yes));
        source = match answer.updated_node {
            Some(source) if all => source,
            _ => {
                return plan_err!(
                    "this worker cannot evaluate the condition {filter} in a scan of .nrt files, although the session can; use the same build of Serrate for the session and its workers"
                );
            }
        };
    }
    let Some(projection) = carrier.projection() else {
        return plan_err!(
            "a received scan of .nrt files does not list the columns to read; use the same build of Serrate for the session and its workers"
        );
    };
    match source.try_pushdown_projection(projection)? {
        Some(source) => Ok(source),
        None => {
            let columns: Vec<&str> = projection.iter().map(|e| e.alias.as_str()).collect();
            plan_err!(
                "this worker cannot return the columns {} from a scan of .nrt files, although the session can; use the same build of Serrate for the session and its workers",
                columns.join(", ")
            )
        }
    }
}

/// Returns the functions that only rules and planners insert into plans: statements cannot name
/// them, or, in the case of `date_part`, name the function that they replace.
pub(crate) fn list_hidden_functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = list_held_functions().to_vec();
    functions.push(Arc::new(build_float_key_function()));
    functions.extend(count_functions());
    functions.push(get_plain_numbers_function());
    functions.extend(list_text_list_functions());
    functions.extend(list_time_text_functions());
    functions.push(get_between_function());
    functions.push(get_coalesce_function());
    functions.push(get_negative_function());
    functions.push(get_not_null_function());
    functions.extend(list_zoned_functions());
    functions.push(build_masked_fields());
    functions.push(Arc::new(list_text_function()));
    functions.push(Arc::clone(&COMPUTED_COLUMN));
    functions.push(Arc::clone(&GIVEN_VALUE));
    functions.extend(build_span_operations());
    functions.push(get_precision_check());
    functions.extend(list_key_functions());
    functions.extend(list_range_checks());
    functions.extend(list_tag_functions());
    functions.push(get_nearest_doubles());
    functions.push(build_wide_part());
    functions
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanDivision {
    pub(crate) partitions: usize,
    /// Total size in bytes of the files that the scan reads, or `None` if it is unknown.
    pub(crate) bytes: Option<u64>,
}

/// Returns how to divide a scan among processes, or `None` if there is nothing to divide: `leaf`
/// has one partition, has a limit, is a table in memory, or is not a scan. The error is the reason
/// why the scan cannot be divided.
pub(crate) fn plan_division(
    leaf: &Arc<dyn ExecutionPlan>,
) -> std::result::Result<Option<ScanDivision>, String> {
    let partitions = leaf.output_partitioning().partition_count();
    let Some(scan) = leaf.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let source = scan.data_source();
    if source.is::<MemorySourceConfig>() || partitions < 2 {
        return Ok(None);
    }
    if leaf.fetch().is_some() {
        return Ok(None);
    }
    if !matches!(leaf.output_partitioning(), Partitioning::UnknownPartitioning(_)) {
        return Err("the files are in folders named after the values of a column, which workers do not support, so the session reads these files".into());
    }
    let bytes = match to_portable(leaf)? {
        PortableNode::Meds(scan) => {
            let meds = source.downcast_ref::<MedsSource>();
            // The check that no subject is in two shards needs all shards. A worker would check
            // only the shards that it reads, and miss a subject that is also in a shard of another
            // worker. So the session itself reads the shards if this check is necessary.
            let checks = scan.has_checks && !scan.shared_subjects;
            if checks && !meds.is_some_and(MedsSource::has_distinct_subjects) {
                return Err(
                    "meds() reads all shards in one process, because a subject is in two shards, or because there are too many rows to rule this out; SET serrate.meds_shared_subjects = true to skip the check"
                        .into(),
                );
            }
            meds.and_then(MedsSource::count_all_bytes)
        }
        PortableNode::Files { .. } => source.downcast_ref::<FileScanConfig>().map(|files| {
            let all = files.file_groups.iter().flat_map(FileGroup::iter);
            all.fold(0, |sum: u64, file| sum.saturating_add(file.effective_size()))
        }),
        _ => None,
    };
    Ok(Some(ScanDivision { partitions, bytes }))
}

/// Returns a scan with `count` partitions: the partitions `range` of the scan `leaf`, then empty
/// partitions.
///
/// # Errors
/// If the source cannot be divided; see [`plan_division`].
pub(crate) fn take_partitions(
    leaf: &Arc<dyn ExecutionPlan>,
    range: Range<usize>,
    count: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let source = leaf.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    if let Some(files) = source.and_then(|s| s.downcast_ref::<FileScanConfig>()) {
        let mut groups = files.file_groups.get(range).unwrap_or_default().to_vec();
        groups.resize_with(count, || FileGroup::new(Vec::new()));
        let files = FileScanConfigBuilder::from(files.clone()).with_file_groups(groups).build();
        return Ok(DataSourceExec::from_data_source(files));
    }
    if let Some(meds) = source.and_then(|s| s.downcast_ref::<MedsSource>()) {
        return Ok(DataSourceExec::from_data_source(meds.take_partitions(range, count)));
    }
    exec_err!("internal error: {} cannot be divided among processes; please report it", leaf.name())
}

/// Returns the local files and folders that a scan reads, or `None` if it reads none.
pub(crate) fn list_paths(leaf: &Arc<dyn ExecutionPlan>) -> Option<Vec<String>> {
    let source = leaf.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source)?;
    if let Some(files) = source.downcast_ref::<FileScanConfig>() {
        let all = files.file_groups.iter().flat_map(FileGroup::iter);
        return Some(all.map(|file| format!("/{}", file.object_meta.location)).collect());
    }
    let meds = source.downcast_ref::<MedsSource>()?;
    Some(vec![meds.folder_root().to_string_lossy().into_owned()])
}
