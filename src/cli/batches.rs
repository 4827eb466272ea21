//! `serrate batches`: writes training batches of health records, as files or as a stream.

use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::arguments::{MAX_BATCH, MAX_LENGTH, MAX_THREADS, parse_up_to, parse_value};
use super::command_failure::{Failure, Outcome};
use super::files::check_name;
use super::interrupt;
use super::output::{format_count, format_rounded, group_digits, print_line};
use super::progress::Progress;
use crate::access;
use crate::dense::PaddingSide;
use crate::io::ExistingTarget;
use crate::io::meds::Labels;
use crate::loader::meds::{MedsLoader, MedsOptions, SequenceUnit, SequenceWindow, StaticsMode};
use crate::loader::{Batch, BatchFolder, BatchForm, BatchStream, EpochStats};
use serrate_core::internal::check_target;

const EXAMPLES: &str = "\
Examples:
  serrate batches cohort/ --split train --batch 256 --len 512 --shuffle -o out/
  serrate batches meds/ --labels labels/ --batch 64 --len 256 -o task/
                      the last 256 measurements before each label
  serrate batches cohort/ --unit event --per-event 32 --batch 64 --len 128 -o e/
  serrate batches cohort/ --window step --overlap 64 --batch 8 --len 512 -o all/
  serrate batches cohort/ --packed --batch 256 --len 512 -o packed/
  serrate batches cohort/ --compat --batch 256 --len 512 -o - | python train.py

A folder gets batch-000000.safetensors, batch-000001.safetensors, .. across all
epochs, and batches.json, which lists them. A stream has for each batch the
length of the file as 8 bytes, little-endian, then the file; at the end comes a
length of 0. docs/training.md shows a PyTorch dataset over the folder.";

/// Arguments of `serrate batches`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct BatchesArgs {
    /// MEDS folder, or tensorized cohort (`serrate convert .. --to meds-torch-data`).
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Folder to write, or `-` for a stream on standard output.
    #[arg(short, long, value_name = "DIR|-")]
    pub(super) output: PathBuf,
    /// Number of items per batch.
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_BATCH))]
    batch: usize,
    /// Largest number of measurements (or events) per item.
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_LENGTH))]
    len: usize,
    /// File or folder of labels; each item is the history of a subject up to the time of one label,
    /// inclusive.
    #[arg(long, value_name = "LABELS")]
    labels: Option<PathBuf>,
    /// Split whose subjects are read: train, tuning, held_out or another [default: all].
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,
    /// Element of a sequence: one `measurement` or one `event`.
    #[arg(long, value_name = "UNIT", default_value = "measurement", value_parser = parse_value::<SequenceUnit>)]
    unit: SequenceUnit,
    /// Part to take of a sequence longer than --len: `random`, `balanced` (each element equally
    /// likely to be taken), `end` or `start`; `step` takes all parts, each as one item [default:
    /// end with labels, else random].
    #[arg(long, value_name = "WINDOW")]
    window: Option<String>,
    /// Distance between the starts of consecutive windows, with --window step [default: --len].
    #[arg(long, value_name = "N", conflicts_with = "overlap")]
    stride: Option<usize>,
    /// Number of elements that consecutive windows share, with --window step.
    #[arg(long, value_name = "N")]
    overlap: Option<usize>,
    /// Static measurements, which have no time: `include` them as tensors, `prepend` them to
    /// sequences, or `omit` them.
    #[arg(long = "static", value_name = "STATIC", default_value = "include", value_parser = parse_value::<StaticsMode>)]
    statics: StaticsMode,
    /// Largest number of measurements per event, with --unit event.
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_LENGTH))]
    per_event: Option<usize>,
    /// Side on which sequences are padded.
    #[arg(long, value_name = "left|right", default_value = "right", value_parser = parse_value::<PaddingSide>)]
    side: PaddingSide,
    /// Pad every batch to --len (and --per-event) instead of to its longest item.
    #[arg(long)]
    fixed: bool,
    /// Write the values of all items one after the other, and the offsets of the items
    /// (`cu_seqlens`), instead of padded tensors.
    #[arg(long, conflicts_with = "fixed")]
    packed: bool,
    /// Write tensors with the names, types and values that meds-torch-data writes.
    #[arg(long, conflicts_with_all = ["packed", "fixed"])]
    compat: bool,
    /// Shuffle the items in every epoch.
    #[arg(long)]
    shuffle: bool,
    /// Seed of random windows and of the shuffled order [default: 0].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Put items of similar length into one batch, within pools of this many consecutive batches.
    #[arg(long, value_name = "BATCHES", value_parser = parse_up_to(MAX_BATCH))]
    bucket: Option<usize>,
    /// Drop the last items if they do not fill a batch.
    #[arg(long)]
    drop_last: bool,
    /// Number of epochs to write.
    #[arg(long, value_name = "N", default_value_t = 1)]
    epochs: u64,
    /// Number of threads that make batches [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_THREADS))]
    threads: Option<usize>,
    /// Replace an existing folder of batches.
    #[arg(long, alias = "force")]
    overwrite: bool,
}

pub(super) fn run(args: &BatchesArgs) -> Outcome {
    let to_stream = args.output.as_os_str() == "-";
    if !to_stream {
        check_name(&args.output, None, "a folder of batches")?;
        check_target(&args.output, args.overwrite)?;
    }
    if access::is_file(&args.input) {
        return Err(Failure::from_usage(format!(
            "{input} is a file, but batches are made from MEDS folders and tensorized cohorts; for other \
             tables use SQL: COPY (SELECT ..) TO 'dir/' STORED AS BATCHES (batch {batch}, len {len})",
            input = args.input.display(),
            batch = args.batch,
            len = args.len
        )));
    }
    let options = to_meds_options(args)?;
    let read = if args.compat { Labels::read_in_text_order } else { Labels::read };
    let labels = args.labels.as_ref().map(read).transpose()?;
    let tasks = args.labels.as_ref().map(Labels::tasks).transpose()?.unwrap_or_default();
    let split = args.split.as_deref();
    let loader = MedsLoader::open(&args.input, split, labels.as_ref(), options)?;
    let mut sink = match to_stream {
        true => BatchSink::Stream(open_stream(&loader)),
        false => {
            let existing = ExistingTarget::from_overwrite(args.overwrite);
            BatchSink::Folder(BatchFolder::create(&args.output, existing)?)
        }
    };
    let progress = Progress::from_rows((loader.num_items() as u64).saturating_mul(args.epochs));
    if loader.unknown_labels() > 0 {
        progress.show_note(&describe_unknown(loader.unknown_labels(), split));
    }
    if loader.dropped_measurements() > 0 {
        progress.show_note(&format!(
            "{} measurements with codes outside the vocabulary are left out, as in a conversion",
            group_digits(loader.dropped_measurements())
        ));
    }
    if !tasks.is_empty() {
        progress.show_note(&describe_tasks(&tasks));
    }
    let mut stats = EpochStats::default();
    for epoch in 0..args.epochs {
        for batch in loader.epoch(epoch)? {
            interrupt::check_interrupt()?;
            let batch = batch?;
            sink.write(epoch, &batch)?;
            stats.add(batch.len(), batch.nbytes(), batch.occupied_bytes());
            progress.add_rows(batch.len());
        }
    }
    if stats.batches == 0 {
        progress.show_note("no batch was written: there are no items, or too few to fill a batch");
    }
    sink.finish(describe_run(args, &loader))?;
    progress.finish();
    let line = summarize_epoch(&stats, &args.output);
    if to_stream {
        eprintln!("{line}");
        return Ok(());
    }
    print_line(&line)
}

/// Opens a stream of batches on standard output. The metadata of the stream lists the label
/// categories, as `batches.json` does in a folder of batches.
fn open_stream(loader: &MedsLoader) -> BatchStream<BufWriter<Stdout>> {
    let out = BufWriter::with_capacity(1 << 20, std::io::stdout());
    let stream = BatchStream::new(out, "standard output");
    match loader.categories() {
        [] => stream,
        categories => stream.metadata("categories", json!(categories).to_string()),
    }
}

/// Checks everything about the arguments that does not depend on the input, such as `--batch 0`.
/// `window` is the value of `--window`. Returns an error that names the wrong flag.
fn check_args(args: &BatchesArgs, window: Option<&str>) -> Outcome {
    let wrong = |message: String| Err(Failure::from_usage(message));
    let step = matches!(window, Some("step" | "step_through"));
    if !step && (args.stride.is_some() || args.overlap.is_some()) {
        return wrong("--stride and --overlap require --window step".into());
    }
    let zeros = [
        ("--batch", Some(args.batch)),
        ("--len", Some(args.len)),
        ("--stride", args.stride),
        ("--per-event", args.per_event),
        ("--bucket", args.bucket),
        ("--threads", args.threads),
        ("--epochs", usize::try_from(args.epochs).ok()),
    ];
    if let Some((flag, _)) = zeros.into_iter().find(|(_, n)| *n == Some(0)) {
        return wrong(format!("{flag} must be at least 1, not 0"));
    }
    if let Some(overlap) = args.overlap.filter(|overlap| *overlap >= args.len) {
        return wrong(format!(
            "--overlap {overlap} with --len {} would repeat the same window; --overlap may be at most {}",
            args.len,
            args.len.saturating_sub(1)
        ));
    }
    if args.per_event.is_some() && args.unit == SequenceUnit::Measurement {
        return wrong("--per-event requires --unit event".into());
    }
    if args.packed && (args.per_event.is_some() || args.side == PaddingSide::Left) {
        let flag = if args.per_event.is_some() { "--per-event" } else { "--side left" };
        return wrong(format!(
            "{flag} applies to padding, but --packed writes none; remove one of the two flags"
        ));
    }
    if args.statics == StaticsMode::Prepend && args.len < 2 && !args.compat {
        return wrong(
            "--static prepend with --len 1 leaves no room for timed measurements; use --len 2 or more"
                .into(),
        );
    }
    Ok(())
}

fn to_meds_options(args: &BatchesArgs) -> Outcome<MedsOptions> {
    let window = args.window.as_deref();
    check_args(args, window)?;
    let window = window.unwrap_or(if args.labels.is_some() { "end" } else { "random" });
    let window = SequenceWindow::named(window, args.len, args.stride, args.overlap)
        .map_err(|e| Failure::from_usage(format!("--window {window} is invalid: {e}")))?;
    let is_random = matches!(window, SequenceWindow::Random | SequenceWindow::BalancedRandom);
    if args.seed.is_some() && !args.shuffle && !is_random {
        return Err(Failure::from_usage(
            "--seed applies to a random order and to random windows, but neither is asked for; add --shuffle or --window random, or remove --seed",
        ));
    }
    let seed = args.seed.unwrap_or(0);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = MedsOptions::new(args.batch, args.len)
        .unit(args.unit)
        .window(window)
        .statics(args.statics)
        .side(args.side)
        .fixed_shape(args.fixed)
        .compat(args.compat)
        .seed(seed)
        .drop_last(args.drop_last)
        .threads(args.threads.unwrap_or_else(cores))
        .prefetch(1);
    if let Some(most) = args.per_event {
        options = options.measurements_per_event(most);
    }
    if args.packed {
        options = options.form(BatchForm::Packed);
    }
    if args.shuffle {
        options = options.shuffle(seed);
    }
    if let Some(pool) = args.bucket {
        options = options.bucket(pool);
    }
    Ok(options)
}

enum BatchSink<W: Write> {
    Folder(BatchFolder),
    Stream(BatchStream<W>),
}

impl<W: Write> BatchSink<W> {
    fn write(&mut self, epoch: u64, batch: &Batch) -> crate::Result<()> {
        match self {
            Self::Folder(folder) => folder.write(epoch, batch),
            Self::Stream(stream) => stream.write(epoch, batch),
        }
    }

    fn finish(self, about: Map<String, Value>) -> crate::Result<()> {
        match self {
            Self::Folder(folder) => folder.finish(about).map(|_| ()),
            Self::Stream(stream) => stream.finish().map(|_| ()),
        }
    }
}

fn describe_run(args: &BatchesArgs, loader: &MedsLoader) -> Map<String, Value> {
    let mut about = Map::new();
    let mut add = |name: &str, value: Value| about.insert(name.to_owned(), value);
    add("epochs", json!(args.epochs));
    add("items", json!(loader.num_items()));
    add("subjects", json!(loader.num_subjects()));
    add("batch", json!(args.batch));
    add("len", json!(args.len));
    add("seed", json!(args.seed.unwrap_or(0)));
    add("split", json!(args.split));
    if args.labels.is_some() {
        add("unknown_labels", json!(loader.unknown_labels()));
    }
    if !loader.categories().is_empty() {
        add("categories", json!(loader.categories()));
    }
    about
}

pub(super) fn describe_tasks(tasks: &[String]) -> String {
    format!(
        "the labels of {} tasks were combined: {}; give the folder of one task to use only its labels",
        tasks.len(),
        tasks.join(", ")
    )
}

pub(super) fn describe_unknown(count: usize, split: Option<&str>) -> String {
    let (noun, gone) = if count == 1 {
        ("label is of a subject", "it is left out")
    } else {
        ("labels are of subjects", "they are left out")
    };
    let place = split.map_or_else(|| "the data".to_owned(), |split| format!("the split {split}"));
    format!("{} {noun} not in {place}: {gone}", group_digits(count))
}

fn summarize_epoch(stats: &EpochStats, output: &Path) -> String {
    let padding = (1.0 - stats.occupied_share()) * 100.0;
    let place = match output.as_os_str() == "-" {
        true => "standard output".to_owned(),
        false => output.display().to_string(),
    };
    format!(
        "wrote {} of {} ({}, {padding:.0} % of it padding) to {place}",
        format_count(stats.batches, "batch", "batches"),
        format_count(stats.items, "item", "items"),
        format_rounded(u128::from(stats.bytes))
    )
}
