//! Iterates over one epoch of `.nrt` files, and prints its time, size and checksum.
//!
//!     cargo run --release --example epoch -- patients.nrt --generate 1250
//!     cargo run --release --example epoch -- patients.nrt --batch 64 --window 256 --seed 7
//!
//! `seconds` is the time of one pass that makes every batch without reading it. A second pass over
//! the same epoch reads every tensor for the checksum: the sum of the bits of all cells, each read
//! as an unsigned little-endian integer, modulo 2^64. It does not depend on the order; the
//! equivalent in numpy is `a.view(f"u{a.itemsize}").sum(dtype="u8")`, summed over all arrays.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use serrate::dense::{AxisSize, DenseTensor, PaddingSide};
use serrate::generate::SyntheticPatients;
use serrate::loader::{BatchForm, EpochStats, Loader, LoaderOptions, WindowSampling};

const HELP: &str = "\
epoch FILE.nrt.. [options]: one epoch of batches, timed

  --batch N        items per batch (64)
  --window N       at most N events per item (256); 0 for whole rows
  --sampling S     random, start, end or step: which events of a longer row (random)
  --stride N       events from one window to the next, for step (the window)
  --seed N         order and random windows (7)
  --no-shuffle     rows in source order
  --bucket [N]     sort pools of N batches by length (16)
  --drop-last      no batch that is short of items
  --columns A,B    only these columns
  --exactly N,N    sizes of the axes after the rows, instead of the longest list of the batch
  --left           padding before the values
  --tokens-i64     integer columns as int64
  --packed         flat values with cu_seqlens instead of padding
  --no-position-ids   packed batches without position ids
  --threads N      threads that make batches (1)
  --prefetch N     batches ready before they are asked for (0; 1 with several threads)
  --epochs N       run N epochs, 0 to N - 1, with a line each (1)
  --no-checksum    without the second pass
  --json           one JSON object per epoch
  --generate N     write N synthetic patients to FILE.nrt first, if it does not exist
";

type Failure = Box<dyn std::error::Error>;

struct Arguments {
    files: Vec<PathBuf>,
    options: LoaderOptions,
    epochs: u64,
    json: bool,
    read: bool,
    generate: Option<u64>,
}

fn read_arguments() -> Result<Option<Arguments>, Failure> {
    let mut parser = lexopt::Parser::from_env();
    let (mut files, mut batch, mut window, mut seed) = (Vec::new(), 64, 256, 7);
    let (mut sampling, mut stride) = ("random".to_owned(), None);
    let (mut shuffle, mut bucket, mut drop_last, mut side) =
        (true, None, false, PaddingSide::Right);
    let (mut columns, mut sizes, mut tokens) = (None, Vec::new(), false);
    let (mut form, mut position_ids) = (BatchForm::Padded, true);
    let (mut threads, mut prefetch) = (1, None);
    let (mut epochs, mut json, mut read, mut generate) = (1, false, true, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(file) => files.push(PathBuf::from(file)),
            Long("batch") => batch = parser.value()?.parse()?,
            Long("window") => window = parser.value()?.parse()?,
            Long("sampling") => sampling = parser.value()?.string()?,
            Long("stride") => stride = Some(parser.value()?.parse()?),
            Long("seed") => seed = parser.value()?.parse()?,
            Long("no-shuffle") => shuffle = false,
            Long("bucket") => {
                bucket = Some(16);
                // The number is optional, because the next argument may be a file or another
                // option.
                if let Some(n) = parser.try_raw_args().and_then(|mut raw| {
                    raw.next_if(|a| a.to_str().is_some_and(|a| a.parse::<usize>().is_ok()))
                }) {
                    bucket = Some(n.parse()?);
                }
            }
            Long("drop-last") => drop_last = true,
            Long("columns") => {
                let names = parser.value()?.string()?;
                columns = Some(names.split(',').map(str::to_owned).collect::<Vec<_>>());
            }
            Long("exactly") => {
                for size in parser.value()?.string()?.split(',') {
                    sizes.push(AxisSize::Exactly(size.parse()?));
                }
            }
            Long("left") => side = PaddingSide::Left,
            Long("tokens-i64") => tokens = true,
            Long("packed") => form = BatchForm::Packed,
            Long("no-position-ids") => position_ids = false,
            Long("threads") => threads = parser.value()?.parse()?,
            Long("prefetch") => prefetch = Some(parser.value()?.parse()?),
            Long("epochs") => epochs = parser.value()?.parse()?,
            Long("no-checksum") => read = false,
            Long("json") => json = true,
            Long("generate") => generate = Some(parser.value()?.parse()?),
            Short('h') | Long("help") => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if files.is_empty() {
        return Err("no file; --help lists the arguments".into());
    }
    let sampling = match sampling.as_str() {
        "random" => WindowSampling::Random,
        "start" => WindowSampling::FromStart,
        "end" => WindowSampling::ToEnd,
        "step" => WindowSampling::Step { stride: stride.unwrap_or(window) },
        other => return Err(format!("sampling is random, start, end or step, not {other}").into()),
    };
    let mut options = LoaderOptions::new(batch)
        .seed(seed)
        .drop_last(drop_last)
        .form(form)
        .sizes(sizes)
        .side(side)
        .tokens_as_i64(tokens)
        .threads(threads)
        .prefetch(prefetch.unwrap_or(usize::from(threads > 1)));
    if window > 0 {
        options = options.window(window, sampling);
    }
    if shuffle {
        options = options.shuffle(seed);
    }
    if let Some(pool) = bucket {
        options = options.bucket(pool);
    }
    if let Some(columns) = columns {
        options = options.columns(columns);
    }
    if !position_ids {
        options = options.position_ids(None);
    }
    Ok(Some(Arguments { files, options, epochs, json, read, generate }))
}

/// The time and size of one epoch.
struct Report {
    epoch: u64,
    open_seconds: f64,
    seconds: f64,
    stats: EpochStats,
    /// The checksum, and the seconds in which it was computed.
    checksum: Option<(u64, f64)>,
    peak_rss: Option<u64>,
}

impl Report {
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn rates(&self) -> (f64, f64, f64) {
        (
            self.stats.batches as f64 / self.seconds,
            self.stats.items as f64 / self.seconds,
            self.stats.bytes as f64 / self.seconds / 1e9,
        )
    }

    fn json(&self) -> serde_json::Value {
        let (batches, items, gb) = self.rates();
        serde_json::json!({
            "epoch": self.epoch,
            "open_seconds": self.open_seconds,
            "seconds": self.seconds,
            "batches": self.stats.batches,
            "items": self.stats.items,
            "dense_bytes": self.stats.bytes,
            "occupied_bytes": self.stats.occupied,
            "largest_batch_bytes": self.stats.largest_batch,
            "padding_share": 1.0 - self.stats.occupied_share(),
            "batches_per_second": batches,
            "items_per_second": items,
            "gb_per_second": gb,
            "peak_rss_bytes": self.peak_rss,
            "checksum": self.checksum.map(|(sum, _)| sum),
            "checksum_seconds": self.checksum.map(|(_, seconds)| seconds),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (batches, items, gb) = self.rates();
        writeln!(f, "epoch          {}: {}", self.epoch, self.stats)?;
        writeln!(f, "seconds        {:.4} (opened in {:.4})", self.seconds, self.open_seconds)?;
        writeln!(f, "rate           {batches:.0} batches/s, {items:.0} items/s, {gb:.1} GB/s")?;
        writeln!(f, "dense bytes    {}", self.stats.bytes)?;
        writeln!(f, "padding share  {:.1} %", 100.0 * (1.0 - self.stats.occupied_share()))?;
        if let Some(peak) = self.peak_rss {
            writeln!(f, "peak resident  {} MB", peak / 1_000_000)?;
        }
        if let Some((sum, seconds)) = self.checksum {
            writeln!(f, "checksum       {sum} (read in {seconds:.4} s)")?;
        }
        Ok(())
    }
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

/// Returns the peak resident memory of the process in bytes, including mapped files, or `None` if
/// the system does not report it.
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn run() -> Result<(), Failure> {
    let Some(arguments) = read_arguments()? else { return Ok(()) };
    if let (Some(patients), Some(file)) = (arguments.generate, arguments.files.first())
        && !file.exists()
    {
        SyntheticPatients::new(42, patients)?.write_nrt(file, &Default::default(), |_| ())?;
    }
    let start = Instant::now();
    let loader = Loader::open(&arguments.files, arguments.options)?;
    let open_seconds = start.elapsed().as_secs_f64();

    for epoch in 0..arguments.epochs {
        let start = Instant::now();
        let mut stats = EpochStats::default();
        for batch in loader.epoch(epoch)? {
            let batch = batch?;
            stats.add(batch.len(), batch.nbytes(), batch.occupied_bytes());
        }
        let seconds = start.elapsed().as_secs_f64();
        let peak_rss = peak_rss();

        let start = Instant::now();
        let mut sum = None;
        if arguments.read {
            let sum = sum.insert(0u64);
            for batch in loader.epoch(epoch)? {
                for (_, tensor) in batch?.tensors() {
                    *sum = sum.wrapping_add(checksum(tensor));
                }
            }
        }
        let checksum = sum.map(|sum| (sum, start.elapsed().as_secs_f64()));
        let report = Report { epoch, open_seconds, seconds, stats, checksum, peak_rss };
        if arguments.json {
            println!("{}", report.json());
        } else {
            print!("{report}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("epoch: {e}");
            ExitCode::FAILURE
        }
    }
}
