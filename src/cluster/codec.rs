//! [`SerrateCodec`]: encodes Serrate's physical plan nodes as bytes, to send them to workers.
//!
//! A node is encoded as the letters `SRTP`, a format version, the length of a JSON object, the
//! object, and a plan or schema if the node has one. DataFusion's protobuf encoding of plans embeds
//! these bytes. The format does not depend on datafusion-distributed. Decoding trusts no input: it
//! checks lengths and versions, and refuses unknown nodes.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, PhysicalExtensionCodec, PhysicalPlanDecodeContext,
    PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use prost::Message;
use serde_json::{Value, json};

use super::nodes::{TaskMergeExec, TaskRowsExec};
use crate::config::SerrateOptions;
use crate::sql::portable::{MedsScan, PortableNode, PortableReader, from_portable, to_portable};

const MAGIC: [u8; 4] = *b"SRTP";
const ENCODING_VERSION: u8 = 1;
/// Number of bytes before the JSON object of an encoded node: `SRTP`, format version, length of the
/// object.
const HEADER_BYTES: usize = 9;

#[derive(Debug)]
pub(super) struct SerrateCodec;

fn write_frame(header: &Value, rest: &[u8], buf: &mut Vec<u8>) -> Result<()> {
    let header = header.to_string();
    let Ok(length) = u32::try_from(header.len()) else {
        return exec_err!(
            "a plan node cannot be sent to workers, because its description has more than 4 GiB; run the statement without workers"
        );
    };
    buf.extend(MAGIC);
    buf.push(ENCODING_VERSION);
    buf.extend(length.to_le_bytes());
    buf.extend(header.as_bytes());
    buf.extend(rest);
    Ok(())
}

fn read_frame(buf: &[u8]) -> Result<(Value, &[u8])> {
    let damaged = || {
        exec_datafusion_err!(
            "a received plan node is damaged, because its header is incomplete or unknown; use the same version of Serrate for the session and all workers"
        )
    };
    let (start, rest) = buf.split_at_checked(HEADER_BYTES).ok_or_else(damaged)?;
    let [m0, m1, m2, m3, format, l0, l1, l2, l3] = *start else { return Err(damaged()) };
    if [m0, m1, m2, m3] != MAGIC {
        return Err(damaged());
    }
    if format != ENCODING_VERSION {
        return exec_err!(
            "a received plan node has the encoding version {format}, but this process reads version {ENCODING_VERSION}; use the same version of Serrate for the session and all workers"
        );
    }
    let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).map_err(|_| damaged())?;
    let (header, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    let header = serde_json::from_slice(header)
        .map_err(|e| exec_datafusion_err!("the description of a received plan node is damaged; use the same version of Serrate for the session and all workers: {e}"))?;
    Ok((header, rest))
}

/// The JSON object of an encoded plan node. Its methods read one key each, and their errors name a
/// missing or invalid key.
struct NodeFields(Value);

impl NodeFields {
    fn make_error(&self, key: &str) -> DataFusionError {
        exec_datafusion_err!(
            "the description of a received plan node lacks a valid `{key}`; use the same version of Serrate for the session and all workers"
        )
    }

    fn read_text(&self, key: &str) -> Result<&str> {
        self.0.get(key).and_then(Value::as_str).ok_or_else(|| self.make_error(key))
    }

    fn read_flag(&self, key: &str) -> Result<bool> {
        self.0.get(key).and_then(Value::as_bool).ok_or_else(|| self.make_error(key))
    }

    fn read_number(&self, key: &str) -> Result<usize> {
        self.0.get(key).and_then(as_size).ok_or_else(|| self.make_error(key))
    }

    fn read_optional_number(&self, key: &str) -> Result<Option<usize>> {
        match self.0.get(key) {
            Some(Value::Null) => Ok(None),
            _ => self.read_number(key).map(Some),
        }
    }

    fn read_texts(&self, key: &str) -> Result<Vec<String>> {
        let values =
            self.0.get(key).and_then(Value::as_array).ok_or_else(|| self.make_error(key))?;
        let texts = values.iter().map(|v| v.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().ok_or_else(|| self.make_error(key))
    }

    fn read_ranges(&self, key: &str) -> Result<Vec<Range<usize>>> {
        let values =
            self.0.get(key).and_then(Value::as_array).ok_or_else(|| self.make_error(key))?;
        let ranges = values.iter().map(|value| match value.as_array()?.as_slice() {
            [start, end] => Some(as_size(start)?..as_size(end)?),
            _ => None,
        });
        ranges.collect::<Option<_>>().ok_or_else(|| self.make_error(key))
    }
}

fn as_size(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

fn encode_schema(schema: &Schema) -> Result<Vec<u8>> {
    let schema: protobuf::Schema = schema.try_into()?;
    Ok(schema.encode_to_vec())
}

fn decode_schema(bytes: &[u8]) -> Result<Schema> {
    let schema = protobuf::Schema::decode(bytes)
        .map_err(|e| exec_datafusion_err!("the schema of a received plan node is damaged; use the same version of Serrate for the session and all workers: {e}"))?;
    Ok((&schema).try_into()?)
}

fn encode_meds(scan: &MedsScan) -> Result<Value> {
    let Some(root) = scan.root.to_str() else {
        return exec_err!(
            "the path {} is not valid UTF-8 and cannot be sent to workers; rename the folder",
            scan.root.display()
        );
    };
    let partitions: Vec<_> = scan.partitions.iter().map(|p| json!([p.start, p.end])).collect();
    Ok(json!({
        "node": "meds",
        "root": root,
        "shards": scan.shards,
        "has_checks": scan.has_checks,
        "columns": scan.columns,
        "shared_subjects": scan.shared_subjects,
        "partitions": partitions,
        "limit": scan.limit,
    }))
}

fn decode_meds(fields: &NodeFields, rest: &[u8]) -> Result<MedsScan> {
    Ok(MedsScan {
        root: PathBuf::from(fields.read_text("root")?),
        shards: fields.read_texts("shards")?,
        has_checks: fields.read_flag("has_checks")?,
        columns: match fields.0.get("columns") {
            Some(Value::Null) => None,
            _ => Some(fields.read_texts("columns")?),
        },
        shared_subjects: fields.read_flag("shared_subjects")?,
        schema: Arc::new(decode_schema(rest)?),
        partitions: fields.read_ranges("partitions")?,
        limit: fields.read_optional_number("limit")?,
    })
}

impl SerrateCodec {
    fn encode_plan(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Vec<u8>> {
        Ok(converter.execution_plan_to_proto(plan, self)?.encode_to_vec())
    }

    /// Decodes a plan within a node. The plan has nodes of DataFusion only: if it could contain
    /// encoded nodes, which contain plans themselves, a short input could overflow the stack.
    fn decode_plan(
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = protobuf::PhysicalPlanNode::decode(bytes)
            .map_err(|e| exec_datafusion_err!("a received plan cannot be decoded; use the same version of Serrate for the session and all workers: {e}"))?;
        let codec = DefaultPhysicalExtensionCodec {};
        converter.proto_to_execution_plan(&plan, &PhysicalPlanDecodeContext::new(context, &codec))
    }

    fn encode_portable(
        &self,
        portable: &PortableNode,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<(Value, Vec<u8>)> {
        let header = match portable {
            PortableNode::BatchSize { rows } => json!({"node": "batch_size", "rows": rows}),
            PortableNode::DeepStack => json!({"node": "deep_stack"}),
            PortableNode::PlainOrder => json!({"node": "plain_order"}),
            PortableNode::Paced => json!({"node": "paced"}),
            PortableNode::SourceOrder { fetch } => json!({"node": "source_order", "fetch": fetch}),
            PortableNode::Unordered => json!({"node": "unordered"}),
            PortableNode::Yielding => json!({"node": "yielding"}),
            PortableNode::Meds(scan) => {
                return Ok((encode_meds(scan)?, encode_schema(&scan.schema)?));
            }
            PortableNode::Files { carrier, reader, preserve_order } => {
                let (name, leaves) = match reader {
                    PortableReader::Nrt => ("nrt", None),
                    PortableReader::Parquet => ("parquet", None),
                    PortableReader::Lists { leaves } => ("lists", Some(leaves)),
                };
                let header = json!({
                    "node": "files",
                    "reader": name,
                    "leaves": leaves,
                    "preserve_order": preserve_order,
                });
                return Ok((header, self.encode_plan(carrier, converter)?));
            }
        };
        Ok((header, Vec::new()))
    }
}

impl PhysicalExtensionCodec for SerrateCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(rows) = node.downcast_ref::<TaskRowsExec>() {
            return write_frame(&json!({"node": "task_rows", "fetch": rows.fetch()}), &[], buf);
        }
        if let Some(merge) = node.downcast_ref::<TaskMergeExec>() {
            // A sort order can be encoded only as part of a node, so this encodes a merge of an
            // empty input in this order.
            let empty = Arc::new(EmptyExec::new(node.schema()));
            let carrier = SortPreservingMergeExec::new(merge.sort_order().clone(), empty)
                .with_fetch(merge.fetch());
            let carrier: Arc<dyn ExecutionPlan> = Arc::new(carrier);
            let rest = self.encode_plan(&carrier, converter)?;
            return write_frame(&json!({"node": "task_merge"}), &rest, buf);
        }
        let portable = to_portable(&node).map_err(DataFusionError::Execution)?;
        let (header, rest) = self.encode_portable(&portable, converter)?;
        write_frame(&header, &rest, buf)
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (header, rest) = read_frame(buf)?;
        let fields = NodeFields(header);
        let portable = match fields.read_text("node")? {
            "batch_size" => PortableNode::BatchSize { rows: fields.read_number("rows")? },
            "deep_stack" => PortableNode::DeepStack,
            "plain_order" => PortableNode::PlainOrder,
            "paced" => PortableNode::Paced,
            "source_order" => {
                PortableNode::SourceOrder { fetch: fields.read_optional_number("fetch")? }
            }
            "unordered" => PortableNode::Unordered,
            "yielding" => PortableNode::Yielding,
            "meds" => PortableNode::Meds(decode_meds(&fields, rest)?),
            "files" => PortableNode::Files {
                reader: match fields.read_text("reader")? {
                    "nrt" => PortableReader::Nrt,
                    "parquet" => PortableReader::Parquet,
                    "lists" => PortableReader::Lists { leaves: fields.read_number("leaves")? },
                    _ => return Err(fields.make_error("reader")),
                },
                preserve_order: fields.read_flag("preserve_order")?,
                carrier: Self::decode_plan(rest, context, converter)?,
            },
            name @ ("task_rows" | "task_merge") => {
                let [input] = inputs else {
                    return exec_err!(
                        "a received plan node has {} inputs instead of 1; use the same version of Serrate for the session and all workers",
                        inputs.len()
                    );
                };
                let input = Arc::clone(input);
                if name == "task_rows" {
                    let fetch = fields.read_optional_number("fetch")?;
                    return Ok(Arc::new(TaskRowsExec::new(input, fetch)));
                }
                let carrier = Self::decode_plan(rest, context, converter)?;
                let Some(merge) = carrier.downcast_ref::<SortPreservingMergeExec>() else {
                    return exec_err!(
                        "a received merge node has no sort order; use the same version of Serrate for the session and all workers"
                    );
                };
                return Ok(Arc::new(TaskMergeExec::new(
                    merge.expr().clone(),
                    input,
                    merge.fetch(),
                )));
            }
            other => {
                return exec_err!(
                    "a received plan node is of the unknown kind {other:?}; use the same version of Serrate for the session and all workers"
                );
            }
        };
        let options = SerrateOptions::of(context.session_config().options());
        from_portable(portable, inputs, options)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;
    use datafusion_proto::bytes::{
        physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
    };
    use datafusion_proto::physical_plan::DeduplicatingProtoConverter;

    use super::*;

    async fn write_files(context: &SessionContext, folder: &std::path::Path) {
        for (i, format) in [(0, "nrt"), (1, "nrt"), (0, "parquet"), (1, "parquet")] {
            let target = folder.join(format).join(format!("{i} ü%.{format}"));
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            let copy = format!(
                "COPY (SELECT value AS subject_id, value % 5 AS g, range(0, value % 6) AS codes \
                 FROM generate_series({}, {}) AS t(value) ORDER BY 1) TO '{}'",
                i * 300,
                i * 300 + 299,
                target.display()
            );
            let copied = crate::sql::sql(context, &copy).await.unwrap();
            copied.collect().await.unwrap();
        }
    }

    /// Queries whose plans together contain every node and source that `to_portable` describes,
    /// except `DeepStackExec` ([`write_deep_query`]).
    const QUERIES: [&str; 13] = [
        "SELECT * FROM T WHERE subject_id % 7 = 3 AND g > 1",
        "SELECT subject_id, codes FROM T WHERE ragged_any(codes > 3)",
        "SELECT subject_id, ragged_lengths(codes) FROM T",
        "SELECT count(*) FROM T",
        "SELECT g, ragged_sum_agg(codes), sum(g / 3.0) FROM T GROUP BY g",
        "SELECT a.subject_id, b.codes FROM T a JOIN T b ON a.subject_id = b.subject_id * 2",
        "SELECT g FROM (SELECT g, subject_id FROM T LIMIT 350) WHERE subject_id > 100",
        "SELECT count(*), sum(subject_id) FROM meds('tests/data/synthea-meds')",
        "SELECT code, time FROM meds('tests/data/tiny-meds') LIMIT 3",
        // Queries whose plans have properties that an encoding could easily lose: a unique column
        // that changes its index, and a column that is constant in each input of a union, but with
        // different constants.
        "SELECT rank() OVER (ORDER BY count(*)) AS r, g FROM T GROUP BY g ORDER BY r, g",
        "SELECT * FROM (SELECT subject_id, 0 AS c FROM T UNION ALL SELECT subject_id, 1 FROM T) ORDER BY c, subject_id",
        // In the row that ROLLUP adds for the total, each key is NULL, even if it is constant
        // otherwise.
        "SELECT k, count(*) FROM (SELECT 'a' AS k FROM T) GROUP BY ROLLUP (k)",
        "SELECT g, count(*) FROM T WHERE g = 3 GROUP BY ROLLUP (g)",
    ];

    /// Returns a query with an expression that is too deep for the stack of a thread.
    fn write_deep_query() -> String {
        // Nests comparisons: the planner replaces a long sum with one call, which is not deep.
        let compared = format!("(subject_id > 400){}", " = (g > 2)".repeat(70));
        format!("SELECT {compared} AS k, count(*) FROM T GROUP BY k")
    }

    /// Without corrected footers, the intervals of this file have no months.
    #[tokio::test(flavor = "multi_thread")]
    async fn decoded_plans_correct_footers_of_parquet_files() {
        let context = crate::sql::session();
        for function in crate::sql::portable::list_hidden_functions() {
            context.register_udf(function.as_ref().clone());
        }
        let file = "tests/data/parquet-types/duckdb.parquet";
        let query = format!("SELECT id, i, u FROM '{file}' WHERE id > 0");
        assert!(check_query(&context, &query).await.contains(".parquet"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn decoded_plans_return_the_same_rows() {
        let context = crate::sql::session();
        for function in crate::sql::portable::list_hidden_functions() {
            context.register_udf(function.as_ref().clone());
        }
        let folder = tempfile::tempdir().unwrap();
        write_files(&context, folder.path()).await;
        let mut seen = String::new();
        for setting in [
            "datafusion.execution.target_partitions = 3",
            "datafusion.optimizer.repartition_file_min_size = 1",
            "serrate.leaf_batch_size = 64",
            "serrate.parquet_lists = false",
        ] {
            crate::sql::sql(&context, &format!("SET {setting}")).await.unwrap();
            for query in QUERIES.map(str::to_owned).into_iter().chain([write_deep_query()]) {
                for format in ["nrt", "parquet"] {
                    let path = folder.path().join(format).display().to_string();
                    let query = query.replace("FROM T", &format!("FROM '{path}/*.{format}'"));
                    let query = query.replace("JOIN T", &format!("JOIN '{path}/*.{format}'"));
                    seen += &check_query(&context, &query).await;
                }
            }
        }
        for node in [
            "BatchSizeExec",
            "DeepStackExec",
            "PacedExec",
            "PlainOrderExec",
            "SourceOrderExec",
            "UnorderedExec",
            "YieldingExec",
            "Meds:",
            ".nrt",
            ".parquet",
            "lists=",
        ] {
            assert!(seen.contains(node), "no plan has {node}");
        }
    }

    /// Encodes and decodes the plan of a query, and checks that the decoded plan returns the same
    /// rows, in any order. Returns the text of the plan, empty if it cannot be encoded.
    async fn check_query(context: &SessionContext, query: &str) -> String {
        let frame =
            crate::sql::sql(context, query).await.unwrap_or_else(|e| panic!("{query}: {e}"));
        let mut config = context.copied_config();
        config.options_mut().optimizer.enable_dynamic_filter_pushdown = false;
        let plan = frame.create_physical_plan().await.unwrap();
        let shown = displayable(plan.as_ref()).indent(true).to_string();
        let converter = DeduplicatingProtoConverter::default();
        let encoded = physical_plan_to_bytes_with_proto_converter(
            Arc::clone(&plan),
            &SerrateCodec,
            &converter,
        );
        // A plan with OFFSET or LIMIT in a file scan cannot be encoded, so nothing is checked.
        let Ok(bytes) = encoded else { return String::new() };
        let task = context.task_ctx();
        let converter = DeduplicatingProtoConverter::default();
        let decoded =
            physical_plan_from_bytes_with_proto_converter(&bytes, &task, &SerrateCodec, &converter)
                .unwrap_or_else(|e| panic!("{query}: {e}"));
        let mut rows = Vec::new();
        for plan in [plan, decoded] {
            let batches = collect(plan, Arc::clone(&task)).await.unwrap();
            let text = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            rows.push(lines);
        }
        assert!(rows[0] == rows[1], "{query}\n{:?}\n{:?}", rows[0], rows[1]);
        shown
    }

    #[test]
    fn changed_descriptions_do_not_panic() {
        let scan = MedsScan {
            root: PathBuf::from("tests/data/tiny-meds"),
            shards: vec!["train/0".into()],
            has_checks: true,
            columns: None,
            shared_subjects: false,
            schema: Arc::new(Schema::empty()),
            partitions: vec![0..1, 1..2],
            limit: None,
        };
        let mut good = Vec::new();
        let rest = encode_schema(&scan.schema).unwrap();
        write_frame(&encode_meds(&scan).unwrap(), &rest, &mut good).unwrap();
        let context = TaskContext::default();
        let converter = DeduplicatingProtoConverter::default();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let _ = SerrateCodec.try_decode(&bytes, &[], &context, &converter);
            }
        }
        // Not even undamaged bytes can be decoded, because the scanned files do not exist here.
        let error = SerrateCodec.try_decode(&good, &[], &context, &converter).unwrap_err();
        assert!(error.to_string().contains("give every machine the same files"), "{error}");
    }

    #[test]
    fn plans_within_nodes_have_no_encoded_nodes() {
        let header = json!({
            "node": "files",
            "reader": "nrt",
            "leaves": null,
            "preserve_order": false,
        });
        let mut inner = Vec::new();
        write_frame(&header, &[], &mut inner).unwrap();
        let node = protobuf::PhysicalExtensionNode { node: inner, inputs: Vec::new() };
        let kind = protobuf::physical_plan_node::PhysicalPlanType::Extension(node);
        let plan = protobuf::PhysicalPlanNode { physical_plan_type: Some(kind) };
        let mut outer = Vec::new();
        write_frame(&header, &plan.encode_to_vec(), &mut outer).unwrap();
        let (context, converter) = (TaskContext::default(), DeduplicatingProtoConverter::default());
        let error = SerrateCodec.try_decode(&outer, &[], &context, &converter).unwrap_err();
        assert!(error.to_string().contains("PhysicalExtensionCodec is not provided"), "{error}");
    }

    #[test]
    fn damaged_frames_are_refused() {
        let mut good = Vec::new();
        write_frame(&json!({"node": "paced"}), b"rest", &mut good).unwrap();
        let (header, rest) = read_frame(&good).unwrap();
        assert_eq!((header["node"].as_str(), rest), (Some("paced"), b"rest".as_slice()));
        for cut in 0..good.len() - 4 {
            assert!(read_frame(&good[..cut]).is_err(), "{cut}");
        }
        let mut other = good.clone();
        other[4] = 9;
        assert!(read_frame(&other).unwrap_err().to_string().contains("version 9"));
        let mut huge = good;
        huge[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read_frame(&huge).is_err());
    }
}
