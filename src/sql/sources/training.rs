//! `COPY .. TO 'dir/' STORED AS BATCHES`: writes a training set to a folder, one file per batch.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::plan_err;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use serde_json::{Map, Value};

use crate::dense::{AxisSize, PaddingSide};
use crate::io::ExistingTarget;
use crate::loader::{BatchFolder, BatchForm, Loader, LoaderOptions, WindowSampling};
use crate::sql::exec::spool::Spool;
use crate::sql::order::build_ordered_sink;
use crate::sql::sources::file_output::find_local_folder;
use crate::sql::sources::target_sink::TargetSink;
use crate::sql::sources::write_only::{WrittenFactory, WrittenFormat};
use crate::table::RaggedTable;
use serrate_core::internal::check_target;

pub(in crate::sql) const BATCHES: &str = "batches";

/// Maximum number of bytes of rows in memory. Beyond it, all rows are in a temporary file.
const IN_MEMORY: usize = 1 << 30;

const READING: &str = "folders of batches can be written by COPY but not read as tables; load their files with the Python package safetensors";

/// Creates [`BatchesFormat`]; registered as `batches`.
pub(crate) type BatchesFormatFactory = WrittenFactory<BatchesFormat>;

/// Training batches as a target of COPY: one safetensors file per batch in a folder
/// ([`BatchFolder`]).
///
/// Items are the rows of the query in source order, or windows of their outermost lists. In a row,
/// the lists of all columns have the same lengths. Until the last batch is written, all rows are
/// kept: up to 1 GiB in memory, larger sets in a memory-mapped temporary file next to the folder.
/// `docs/training.md` lists the options.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchesFormat {
    options: BatchesOptions,
}

#[derive(Clone, Debug, Default)]
struct BatchesOptions {
    loader: Option<LoaderOptions>,
    epochs: u64,
    overwrite: bool,
}

const NAMES: [&str; 15] = [
    "batch",
    "len",
    "window",
    "stride",
    "inner",
    "fixed",
    "seed",
    "shuffle",
    "bucket",
    "drop_last",
    "epochs",
    "side",
    "packed",
    "keep_types",
    "overwrite",
];

struct OptionTexts<'a>(HashMap<&'a str, &'a str>);

impl<'a> OptionTexts<'a> {
    fn new(options: &'a HashMap<String, String>) -> Result<Self> {
        let mut texts = HashMap::new();
        for (key, value) in options {
            let name = key.strip_prefix("format.").unwrap_or(key);
            if NAMES.contains(&name) {
                texts.insert(name, value.as_str());
            } else if !name.starts_with("execution.") {
                // Options `execution.*` of COPY are ignored; others that are not in `NAMES` are
                // errors.
                return plan_err!(
                    "the format BATCHES has no option '{name}'; the options of this format are {}",
                    NAMES.join(", ")
                );
            }
        }
        Ok(Self(texts))
    }

    fn parse_number(&self, name: &str) -> Result<Option<u64>> {
        match self.0.get(name).map(|text| text.trim().parse()) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => {
                plan_err!("option '{name}' must be an integer of 0 or more, not '{}'", self.0[name])
            }
        }
    }

    fn size(&self, name: &str) -> Result<Option<usize>> {
        match self.parse_number(name)?.map(usize::try_from) {
            Some(Err(_)) => {
                plan_err!("option '{name}' must be at most {}, not {}", usize::MAX, self.0[name])
            }
            number => Ok(number.and_then(std::result::Result::ok)),
        }
    }

    fn parse_flag(&self, name: &str) -> Result<bool> {
        match self.0.get(name).map(|text| text.trim().to_ascii_lowercase()).as_deref() {
            None | Some("false" | "off" | "0" | "no") => Ok(false),
            Some("true" | "on" | "1" | "yes") => Ok(true),
            Some(other) => plan_err!("option '{name}' must be true or false, not '{other}'"),
        }
    }

    fn find_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|text| text.trim())
    }

    /// Returns how windows are chosen. `len` is the length of windows.
    fn parse_sampling(&self, len: Option<usize>) -> Result<WindowSampling> {
        Ok(match (self.find_text("window"), self.size("stride")?) {
            (None | Some("end"), None) => WindowSampling::ToEnd,
            (Some("start"), None) => WindowSampling::FromStart,
            (Some("random"), None) => WindowSampling::Random,
            (Some("balanced"), None) => WindowSampling::BalancedRandom,
            (Some("step"), stride) => {
                WindowSampling::Step { stride: stride.or(len).unwrap_or(usize::MAX) }
            }
            (None | Some("end" | "start" | "random" | "balanced"), Some(_)) => {
                return plan_err!(
                    "option 'stride' requires window 'step', but the window is '{}'; set window 'step' or remove 'stride'",
                    self.find_text("window").unwrap_or("end")
                );
            }
            (Some(other), _) => {
                return plan_err!(
                    "option 'window' must be 'end', 'start', 'random', 'balanced' or 'step', not '{other}'"
                );
            }
        })
    }

    /// Returns the seed, 0 by default. Returns an error if a seed is given that has no effect.
    fn parse_seed(&self, sampling: WindowSampling, shuffle: bool) -> Result<u64> {
        let seed = self.parse_number("seed")?;
        let has_random_windows =
            matches!(sampling, WindowSampling::Random | WindowSampling::BalancedRandom);
        if seed.is_some() && !shuffle && !has_random_windows {
            return plan_err!(
                "option 'seed' applies to a random order and to random windows, but neither is asked for; add shuffle true or window 'random', or remove 'seed'"
            );
        }
        Ok(seed.unwrap_or(0))
    }

    /// Returns an error if an option of padding is given, because packed batches have no padding.
    fn check_packed(&self, fixed: bool) -> Result<()> {
        for (name, given) in [
            ("fixed", fixed),
            ("inner", self.0.contains_key("inner")),
            ("side", self.find_text("side") == Some("left")),
        ] {
            if given {
                return plan_err!(
                    "option '{name}' applies to padding, which packed batches do not have; remove 'packed' or '{name}'"
                );
            }
        }
        Ok(())
    }
}

impl BatchesOptions {
    fn parse(options: &HashMap<String, String>) -> Result<Self> {
        let texts = OptionTexts::new(options)?;
        let Some(batch) = texts.size("batch")? else {
            return plan_err!(
                "STORED AS BATCHES needs option 'batch', the number of items per batch, which is not given; add it, as in STORED AS BATCHES (batch 256, len 512)"
            );
        };
        let mut loader = LoaderOptions::new(batch);
        let (len, inner) = (texts.size("len")?, texts.size("inner")?);
        let epochs = texts.parse_number("epochs")?.unwrap_or(1);
        for (name, zero) in [
            ("batch", batch == 0),
            ("len", len == Some(0)),
            ("inner", inner == Some(0)),
            ("epochs", epochs == 0),
        ] {
            if zero {
                return plan_err!("option '{name}' must be at least 1, not 0");
            }
        }
        let sampling = texts.parse_sampling(len)?;
        match len {
            Some(len) => loader = loader.window(len, sampling),
            None if texts.0.contains_key("window") => {
                return plan_err!(
                    "option 'window' needs option 'len', the length of the windows, which is not given; add it, such as len 512, or remove 'window'"
                );
            }
            None => {}
        }
        let (fixed, packed) = (texts.parse_flag("fixed")?, texts.parse_flag("packed")?);
        if packed {
            texts.check_packed(fixed)?;
        }
        let size = |n: Option<usize>| match n {
            None => AxisSize::Longest,
            Some(n) if fixed => AxisSize::Exactly(n),
            Some(n) => AxisSize::AtMost(n),
        };
        match (fixed, len, inner) {
            (true, None, _) => {
                return plan_err!(
                    "option 'fixed' needs option 'len', the length of each padded list, which is not given; add it, such as len 512, or remove 'fixed'"
                );
            }
            (_, _, Some(_)) => loader = loader.sizes([size(len), size(inner)]),
            (true, _, None) => loader = loader.sizes([size(len)]),
            (false, _, None) => {}
        }
        let shuffle = texts.parse_flag("shuffle")?;
        let seed = texts.parse_seed(sampling, shuffle)?;
        loader = if shuffle { loader.shuffle(seed) } else { loader.seed(seed) };
        if let Some(pool) = texts.size("bucket")? {
            loader = loader.bucket(pool);
        }
        if let Some(side) = texts.find_text("side") {
            loader = loader.side(side.parse::<PaddingSide>()?);
        }
        if packed {
            loader = loader.form(BatchForm::Packed);
        }
        loader = loader
            .drop_last(texts.parse_flag("drop_last")?)
            .tokens_as_i64(!texts.parse_flag("keep_types")?);
        Ok(Self { loader: Some(loader), epochs, overwrite: texts.parse_flag("overwrite")? })
    }
}

impl WrittenFormat for BatchesFormat {
    const NAME: &'static str = BATCHES;
    const READING: &'static str = READING;
    const COMPRESSING: &'static str = "batches cannot be compressed; remove the compression";

    fn parse(options: &HashMap<String, String>) -> Result<Self> {
        Ok(Self { options: BatchesOptions::parse(options)? })
    }

    fn plan_copy(
        &self,
        input: Arc<dyn ExecutionPlan>,
        conf: &FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let target = find_local_folder(conf, "BATCHES")?;
        check_target(&target, self.options.overwrite)?;
        let (schema, options) = (Arc::clone(conf.output_schema()), self.options.clone());
        let sink = TargetSink::new(
            "BatchesSink(folder=",
            target,
            schema,
            move |batches, target, schema, limit| {
                write_batches(batches, target, schema, &options, limit)
            },
        );
        build_ordered_sink(input, sink, order, "batch", Some(&[]))
    }
}

fn write_batches(
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    target: &Path,
    schema: &SchemaRef,
    options: &BatchesOptions,
    limit: u64,
) -> Result<u64> {
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty());
    let mut spool = Spool::new(folder.unwrap_or(Path::new(".")), IN_MEMORY);
    for batch in batches {
        spool.push(batch?)?;
    }
    let kept = spool.finish()?;
    // Each batch of the query becomes one table (a shard) of the loader. The batches are not
    // concatenated, so no rows are copied.
    let mut shards =
        kept.batches.iter().map(RaggedTable::try_from_batch).collect::<crate::Result<Vec<_>>>()?;
    if shards.is_empty() {
        let none = RecordBatch::new_empty(Arc::clone(schema));
        shards.push(RaggedTable::try_from_batch(&none)?);
    }
    let Some(loader) = options.loader.clone() else {
        return plan_err!(
            "STORED AS BATCHES needs option 'batch', which is not given; add it, as in STORED AS BATCHES (batch 256)"
        );
    };
    let loader = Loader::try_new(shards, loader.limit(limit))?;
    let existing = ExistingTarget::from_overwrite(options.overwrite);
    let mut folder = BatchFolder::create(target, existing)?;
    for epoch in 0..options.epochs {
        for batch in loader.epoch(epoch)? {
            folder.write(epoch, &batch?)?;
        }
    }
    let rows = u64::try_from(loader.num_rows()).unwrap_or(u64::MAX);
    folder.finish(Map::from_iter([("rows".to_owned(), Value::from(rows))]))?;
    Ok(rows)
}
