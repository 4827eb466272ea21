//! Iterates over one epoch of health records, and prints its time, size and checksum.
//!
//!     cargo run --release --no-default-features --features parquet --example meds_epoch -- \
//!         COHORT --split train --batch 256 --len 512 --unit measurement --static omit --seed 7
//!
//! COHORT is a tensorized cohort or a MEDS data set. `seconds` is the time of one pass that makes
//! every batch without reading it. A second pass over the same epoch reads every tensor for the
//! checksum: the sum of the bits of all cells, each read as an unsigned little-endian integer,
//! modulo 2^64; the equivalent in numpy is `a.view(f"u{a.itemsize}").sum(dtype="u8")`, summed over
//! all arrays. `--fill` also measures how long writing as many bytes into reused buffers takes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use serrate::dense::{DenseTensor, PaddingSide};
use serrate::io::meds::Labels;
use serrate::loader::meds::{MedsLoader, MedsOptions, SequenceUnit, SequenceWindow, StaticsMode};
use serrate::loader::{BatchForm, EpochStats};

const HELP: &str = "\
meds_epoch COHORT [options]: one epoch of batches, timed

  --split S        train, tuning, held_out, ..; all subjects where it is left out
  --labels DIR     one item per label, up to its prediction time
  --batch N        items per batch (256)
  --len N          at most N measurements or events per item (512)
  --unit U         measurement or event (measurement)
  --window W       random, end, start or step: which part of a longer sequence (random)
  --stride N       from one window to the next, for step (the length)
  --overlap N      or what two windows share
  --static S       include, prepend or omit static facts (include)
  --cap N          at most N measurements per event
  --seed N         order and random windows (7)
  --no-shuffle     items in source order
  --bucket N       sort pools of N batches by length
  --left           padding before the values
  --packed         flat values with cu_seqlens instead of padding
  --compat         the tensors of meds-torch-data
  --threads N      threads that make batches (1)
  --prefetch N     batches ready before they are asked for (0; 1 with several threads)
  --epochs N       run N epochs, 0 to N - 1, with a line each (1)
  --no-checksum    without the second pass
  --write-padding  write all padding of every batch, as if others could have written to its memory
  --fill           time what writing as many bytes takes
  --json           one JSON object per epoch
";

type Failure = Box<dyn std::error::Error>;

struct Arguments {
    root: PathBuf,
    split: Option<String>,
    labels: Option<PathBuf>,
    options: MedsOptions,
    epochs: u64,
    json: bool,
    read: bool,
    fill: bool,
}

fn read_arguments() -> Result<Option<Arguments>, Failure> {
    let mut parser = lexopt::Parser::from_env();
    let (mut root, mut split, mut labels) = (None, None, None);
    let (mut batch, mut len, mut seed, mut shuffle) = (256, 512, 7, true);
    let (mut window, mut stride, mut overlap) = ("random".to_owned(), None, None);
    let (mut unit, mut statics, mut cap) = (SequenceUnit::Measurement, StaticsMode::Include, None);
    let (mut side, mut form, mut compat, mut bucket) =
        (PaddingSide::Right, BatchForm::Padded, false, None);
    let (mut threads, mut prefetch) = (1, None);
    let (mut epochs, mut json, mut read, mut fill, mut trusted) = (1, false, true, false, true);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(folder) if root.is_none() => root = Some(PathBuf::from(folder)),
            Long("split") => split = Some(parser.value()?.string()?),
            Long("labels") => labels = Some(PathBuf::from(parser.value()?)),
            Long("batch") => batch = parser.value()?.parse()?,
            Long("len") => len = parser.value()?.parse()?,
            Long("unit") => unit = parser.value()?.string()?.parse()?,
            Long("window") => window = parser.value()?.string()?,
            Long("stride") => stride = Some(parser.value()?.parse()?),
            Long("overlap") => overlap = Some(parser.value()?.parse()?),
            Long("static") => statics = parser.value()?.string()?.parse()?,
            Long("cap") => cap = Some(parser.value()?.parse()?),
            Long("seed") => seed = parser.value()?.parse()?,
            Long("no-shuffle") => shuffle = false,
            Long("bucket") => bucket = Some(parser.value()?.parse()?),
            Long("left") => side = PaddingSide::Left,
            Long("packed") => form = BatchForm::Packed,
            Long("compat") => compat = true,
            Long("threads") => threads = parser.value()?.parse()?,
            Long("prefetch") => prefetch = Some(parser.value()?.parse()?),
            Long("epochs") => epochs = parser.value()?.parse()?,
            Long("no-checksum") => read = false,
            Long("write-padding") => trusted = false,
            Long("fill") => fill = true,
            Long("json") => json = true,
            Short('h') | Long("help") => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let root = root.ok_or("no folder; --help lists the arguments")?;
    let mut options = MedsOptions::new(batch, len)
        .unit(unit)
        .window(SequenceWindow::named(&window, len, stride, overlap)?)
        .statics(statics)
        .seed(seed)
        .side(side)
        .form(form)
        .compat(compat)
        .trust_padding(trusted)
        .threads(threads)
        .prefetch(prefetch.unwrap_or(usize::from(threads > 1)));
    if shuffle {
        options = options.shuffle(seed);
    }
    if let Some(pool) = bucket {
        options = options.bucket(pool);
    }
    if let Some(cap) = cap {
        options = options.measurements_per_event(cap);
    }
    Ok(Some(Arguments { root, split, labels, options, epochs, json, read, fill }))
}

/// Returns the sum of all elements, each read as an unsigned integer.
fn checksum(tensor: &DenseTensor) -> u64 {
    fn sum<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> u64) -> u64 {
        bytes.as_chunks().0.iter().fold(0u64, |sum, cell| sum.wrapping_add(value(*cell)))
    }
    let bytes = tensor.as_bytes();
    match tensor.dtype().size() {
        1 => sum(bytes, |[b]| b.into()),
        2 => sum(bytes, |b| u16::from_ne_bytes(b).into()),
        4 => sum(bytes, |b| u32::from_ne_bytes(b).into()),
        _ => sum(bytes, u64::from_ne_bytes),
    }
}

/// Returns the seconds that it takes to write the largest batch `batches` times, `bytes` in total,
/// into one buffer.
fn fill(stats: &EpochStats) -> Result<f64, Failure> {
    let mut buffer = vec![1u8; usize::try_from(stats.largest_batch)?];
    let start = Instant::now();
    let mut left = stats.bytes;
    let mut byte = 2u8;
    while left > 0 {
        let n = left.min(stats.largest_batch);
        let part = buffer.get_mut(..usize::try_from(n)?).ok_or("the largest batch is not")?;
        part.fill(byte);
        std::hint::black_box(part);
        byte = byte.wrapping_add(1);
        left -= n;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn run() -> Result<(), Failure> {
    let Some(arguments) = read_arguments()? else { return Ok(()) };
    let start = Instant::now();
    let labels = arguments.labels.map(Labels::read).transpose()?;
    let split = arguments.split.as_deref();
    let loader = MedsLoader::open(&arguments.root, split, labels.as_ref(), arguments.options)?;
    let open_seconds = start.elapsed().as_secs_f64();

    for epoch in 0..arguments.epochs {
        let start = Instant::now();
        let mut stats = EpochStats::default();
        for batch in loader.epoch(epoch)? {
            let batch = batch?;
            stats.add(batch.len(), batch.nbytes(), batch.occupied_bytes());
        }
        let seconds = start.elapsed().as_secs_f64();
        let mut sum = None;
        if arguments.read {
            let sum = sum.insert(0u64);
            for batch in loader.epoch(epoch)? {
                for (_, tensor) in batch?.tensors() {
                    *sum = sum.wrapping_add(checksum(tensor));
                }
            }
        }
        let fill_seconds = arguments.fill.then(|| fill(&stats)).transpose()?;
        if arguments.json {
            let report = serde_json::json!({
                "epoch": epoch,
                "open_seconds": open_seconds,
                "seconds": seconds,
                "batches": stats.batches,
                "items": stats.items,
                "unknown_labels": loader.unknown_labels(),
                "dense_bytes": stats.bytes,
                "occupied_bytes": stats.occupied,
                "largest_batch_bytes": stats.largest_batch,
                "fill_seconds": fill_seconds,
                "checksum": sum,
            });
            println!("{report}");
            continue;
        }
        println!("epoch     {epoch}: {stats}");
        println!("seconds   {seconds:.5} (opened in {open_seconds:.4})");
        if let Some(fill) = fill_seconds {
            println!("fill      {fill:.5} s for as many bytes ({:.2} times that)", seconds / fill);
        }
        if let Some(sum) = sum {
            println!("checksum  {sum}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("meds_epoch: {e}");
            ExitCode::FAILURE
        }
    }
}
