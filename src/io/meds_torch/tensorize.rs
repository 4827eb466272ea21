//! [`tensorize`]: a MEDS data set as a tensorized cohort.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow::array::{Array, StringArray};
use safetensors::Dtype;

use super::build::{Builder, Row, sort};
use super::codes::{Arithmetic, Codes, Entry};
use super::parallel::in_order;
use super::{SCHEMAS, TENSORS, TensorizeOptions, TensorizedCohort, Unknown, schemas};
use crate::error::{Error, Result};
use crate::io::atomic::AtomicFolder;
use crate::io::meds::file::Source;
use crate::io::meds::{Chunk, MedsDataset, Place, Splits, Values, below_split};
use crate::io::safetensors::{SaveOptions, write_tensors};

/// What became of a data set.
#[derive(Clone, Debug, Default)]
pub struct TensorizeReport {
    /// The shards written, in the order of those read.
    pub shards: Vec<ShardReport>,
    /// Codes in the vocabulary.
    pub codes: usize,
    /// Codes that are not in the vocabulary, with the number of measurements that have them.
    pub unknown: BTreeMap<String, u64>,
    /// Shards whose rows were not in the order of subject and time, and were sorted.
    pub unsorted: Vec<String>,
    /// Whether nothing says which split the subjects are in; everything was taken for training.
    pub no_splits: bool,
}

/// What was written of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardReport {
    /// Its name, with the split in front: `train/0`.
    pub name: String,
    /// Rows.
    pub subjects: usize,
    /// Rows without events.
    pub without_events: usize,
    /// Events.
    pub events: usize,
    /// Measurements with a time.
    pub measurements: usize,
    /// Measurements without a time.
    pub statics: usize,
}

impl TensorizeReport {
    /// Measurements whose code is not in the vocabulary.
    pub fn unknown_measurements(&self) -> u64 {
        self.unknown.values().sum()
    }

    fn total(&self, part: impl Fn(&ShardReport) -> usize) -> usize {
        self.shards.iter().map(part).sum()
    }

    /// Rows of all shards.
    pub fn subjects(&self) -> usize {
        self.total(|s| s.subjects)
    }

    /// Events of all shards.
    pub fn events(&self) -> usize {
        self.total(|s| s.events)
    }

    /// Measurements with a time of all shards.
    pub fn measurements(&self) -> usize {
        self.total(|s| s.measurements)
    }

    /// Measurements without a time of all shards.
    pub fn statics(&self) -> usize {
        self.total(|s| s.statics)
    }
}

/// Writes a MEDS data set as a folder that meds-torch-data's `MEDSPytorchDataset` opens.
///
/// * One `data/<shard>.nrt` per shard, with `code` (Int64) and `numeric_value` (Float32) per
///   measurement and `time_delta_days` (Float32) per event: whole seconds since the event before /
///   86,400, NaN in a subject's first. Numbers that are missing or infinite are NaN; there may be no
///   column of numbers at all.
/// * One `tokenization/schemas/<shard>.parquet` with the same rows. Times are whole there; rebuilding
///   them from deltas would not give them back.
/// * `metadata/codes.parquet`: the vocabulary, the columns of the data set's own file, and what was
///   counted in the train split when it was read for the vocabulary or to normalize.
///
/// Subjects stand in the order in which they first appear in their shard, measurements of an event in
/// the order of the file. Rows out of order are sorted by time, stably. The split is the folder that
/// a shard lies in, else that of `metadata/subject_splits.parquet`, by which a shard is divided; the
/// new name of a shard begins with it. A subject that keeps no measurement at all is left out.
///
/// Each shard is read once, the train split twice when something is counted in it. Memory is that of
/// the shards worked on at a time. The folder appears whole or not at all.
///
/// `progress` is called after each shard, from any thread; [`ControlFlow::Break`] ends the work.
///
/// # Errors
/// When the folder exists and is not empty (with `overwrite`: holds anything but a tensorized cohort),
/// the data cannot be read, a subject has no split, a code is unknown and refused, two shards
/// get one name, or `progress` ended it.
///
/// ```
/// use std::ops::ControlFlow;
/// use serrate::io::meds::MedsDataset;
/// use serrate::io::meds_torch::{Normalize, TensorizeOptions, TensorizedCohort, tensorize};
/// let data = MedsDataset::open("tests/data/synthea-meds")?;
/// let dir = tempfile::tempdir()?;
/// let out = dir.path().join("cohort");
/// let options = TensorizeOptions { normalize: Normalize::Compatible, ..Default::default() };
/// let report = tensorize(&data, &out, &options, |_| ControlFlow::Continue(()))?;
/// assert_eq!((report.subjects(), report.codes, report.unknown.len()), (28, 400, 27));
/// assert_eq!(TensorizedCohort::open(&out)?.shards().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tensorize(
    dataset: &MedsDataset,
    out: impl AsRef<Path>,
    options: &TensorizeOptions,
    progress: impl Fn(&[ShardReport]) -> ControlFlow<()> + Sync,
) -> Result<TensorizeReport> {
    let out = out.as_ref();
    check_output(dataset.root(), out, options.overwrite)?;
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(8),
        jobs => jobs,
    };
    let splits = Splits::of(dataset.root())?;
    let sources = dataset.sources();
    let names = names(dataset, &splits)?;
    let codes = Codes::of(dataset, &splits, options, jobs)?;

    let staging = AtomicFolder::create(out)?;
    let root = staging.path();
    let metadata = root.join("metadata");
    fs::create_dir_all(&metadata).map_err(|e| Error::io(&metadata, e))?;
    codes.write(&metadata.join("codes.parquet"))?;

    let mut report = TensorizeReport {
        codes: codes.len(),
        no_splits: sources.iter().all(|(name, _)| splits.place(name) == Place::Unknown),
        ..TensorizeReport::default()
    };
    let work = |i: usize| {
        let (name, source) = &sources[i];
        let encoder = Encoder { codes: &codes, splits: &splits, unknown: options.unknown };
        let shard = encoder.shard(source, &names[i])?;
        let written = shard
            .parts
            .iter()
            .map(|(n, p)| write(root, n, p, &codes))
            .collect::<Result<Vec<_>>>()?;
        if progress(&written).is_break() {
            return Err(Error::invalid("stopped before all shards were written"));
        }
        Ok((written, shard.unknown, shard.sorted.then(|| name.clone())))
    };
    in_order(sources.len(), jobs, work, |(written, unknown, sorted)| {
        report.shards.extend(written);
        for (code, count) in unknown {
            *report.unknown.entry(code).or_default() += count;
        }
        report.unsorted.extend(sorted);
        Ok(())
    })?;
    staging.commit()?;
    Ok(report)
}

/// The parts of shard `i` go to `names[i]`: one name, or one per split.
fn names(dataset: &MedsDataset, splits: &Splits) -> Result<Vec<Vec<String>>> {
    let mut seen = std::collections::HashMap::new();
    let sources = dataset.sources();
    let names = sources.iter().map(|(name, source)| {
        let names = match splits.place(name) {
            Place::Split(split) => vec![below_split(split, name)],
            Place::BySubject => splits.names().iter().map(|s| below_split(s, name)).collect(),
            Place::Unknown => vec![name.clone()],
        };
        for name in &names {
            if let Some(other) = seen.insert(name.clone(), source.path()) {
                return Err(Error::file(
                    source.path(),
                    format!(
                        "it would become {name:?}, as {} does; rename one of them",
                        other.display()
                    ),
                ));
            }
        }
        Ok(names)
    });
    names.collect()
}

/// A shard in memory.
struct Encoded {
    /// By name; only those that have rows, but one at least.
    parts: Vec<(String, Builder)>,
    unknown: BTreeMap<String, u64>,
    sorted: bool,
}

struct Encoder<'a> {
    codes: &'a Codes,
    splits: &'a Splits,
    unknown: Unknown,
}

/// Where rows go.
enum Target {
    /// To tensors, as long as they are in order.
    Build,
    /// To a list, to be sorted.
    Collect(Vec<Row>),
}

impl Encoder<'_> {
    fn shard(&self, source: &Source, names: &[String]) -> Result<Encoded> {
        if let Some(encoded) = self.read(source, names, Target::Build)? {
            return Ok(encoded);
        }
        let encoded = self.read(source, names, Target::Collect(Vec::new()))?;
        encoded.ok_or_else(|| Error::file(source.path(), "the file changed while it was read"))
    }

    /// `None` when the rows are not in order.
    fn read(
        &self,
        source: &Source,
        names: &[String],
        mut target: Target,
    ) -> Result<Option<Encoded>> {
        let mut builders: Vec<Builder> = names.iter().map(|_| Builder::default()).collect();
        if let ([builder], Target::Build) = (builders.as_mut_slice(), &target) {
            builder.reserve(source.rows()?);
        }
        let mut unknown = BTreeMap::new();
        let mut known: Option<StringArray> = None;
        let mut entries: Vec<Option<Entry>> = Vec::new();
        let mut missed: Vec<u64> = Vec::new();
        let mut route =
            Route { of: (names.len() > 1).then_some(self.splits), subject: None, to: 0 };
        for chunk in Chunk::read(source)? {
            let chunk = chunk?;
            if known.as_ref().is_none_or(|k| !chunk.same_codes(k)) {
                count_missed(known.as_ref(), &mut missed, &mut unknown);
                entries = (0..chunk.codes.len())
                    .map(|i| match chunk.codes.is_valid(i) {
                        true => self.codes.get(chunk.codes.value(i)),
                        false => None,
                    })
                    .collect();
                missed.resize(entries.len(), 0);
                known = Some(chunk.codes.clone());
            }
            let timed = chunk.times.null_count() == 0;
            for row in 0..chunk.len() {
                let key = chunk.keys[row] as usize;
                let entry = match entries[key] {
                    Some(entry) => entry,
                    None => {
                        missed[key] += 1;
                        match self.unknown {
                            Unknown::Drop => continue,
                            Unknown::Zero => {
                                Entry { token: 0, mean: f64::NAN, std: f64::NAN, scaled: false }
                            }
                            Unknown::Refuse => return Err(self.refused(source, &chunk, row)),
                        }
                    }
                };
                let subject = chunk.subjects[row];
                let time = (timed || chunk.times.is_valid(row)).then(|| chunk.times.value(row));
                let value = self.value(&chunk.values, row, &entry);
                let row = Row { subject, time, token: entry.token, value };
                match &mut target {
                    Target::Build => {
                        let to = route.to(source, subject)?;
                        if !builders[to].push(row) {
                            return Ok(None);
                        }
                    }
                    Target::Collect(rows) => rows.push(row),
                }
            }
        }
        count_missed(known.as_ref(), &mut missed, &mut unknown);
        let sorted = matches!(target, Target::Collect(_));
        if let Target::Collect(mut rows) = target {
            sort(&mut rows);
            for row in rows {
                let to = route.to(source, row.subject)?;
                builders[to].push(row);
            }
        }
        let mut parts: Vec<(String, Builder)> = names.iter().cloned().zip(builders).collect();
        if parts.len() > 1 {
            parts.retain(|(_, builder)| !builder.subjects.is_empty());
        }
        Ok(Some(Encoded { parts, unknown, sorted }))
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "tensors have numbers of 32 bits; in the arithmetic of 32 bits, mean and std have them already"
    )]
    fn value(&self, values: &Values, row: usize, entry: &Entry) -> Option<f32> {
        match values {
            Values::Absent => None,
            Values::Single(v) if v.is_null(row) => None,
            Values::Double(v) if v.is_null(row) => None,
            Values::Single(v) => match self.codes.arithmetic {
                Arithmetic::Raw => Some(v.value(row)),
                _ if !entry.scaled => None,
                Arithmetic::Single => Some((v.value(row) - entry.mean as f32) / entry.std as f32),
                Arithmetic::Double => {
                    Some(((f64::from(v.value(row)) - entry.mean) / entry.std) as f32)
                }
            },
            Values::Double(v) => match self.codes.arithmetic {
                Arithmetic::Raw => Some(v.value(row) as f32),
                _ if !entry.scaled => None,
                _ => Some(((v.value(row) - entry.mean) / entry.std) as f32),
            },
        }
    }

    fn refused(&self, source: &Source, chunk: &Chunk, row: usize) -> Error {
        let code = chunk.codes.value(chunk.keys[row] as usize);
        source.wrong_value(
            "code",
            chunk.first_row.saturating_add(row),
            &format!(
                "{code:?} is not among the {} codes of the vocabulary; drop such measurements or give them the token 0",
                self.codes.len()
            ),
        )
    }
}

/// Adds up the measurements of a dictionary's unknown codes.
fn count_missed(
    codes: Option<&StringArray>,
    missed: &mut Vec<u64>,
    unknown: &mut BTreeMap<String, u64>,
) {
    if let Some(codes) = codes {
        for (key, count) in missed.iter().enumerate().filter(|(_, count)| **count > 0) {
            *unknown.entry(codes.value(key).to_string()).or_default() += count;
        }
    }
    missed.clear();
}

/// Finds the part of a shard that a subject belongs to.
struct Route<'a> {
    /// `None` when there is one part.
    of: Option<&'a Splits>,
    subject: Option<i64>,
    to: usize,
}

impl Route<'_> {
    #[inline]
    fn to(&mut self, source: &Source, subject: i64) -> Result<usize> {
        if let Some(splits) = self.of
            && self.subject != Some(subject)
        {
            self.subject = Some(subject);
            self.to = splits.of_subject(subject).ok_or_else(|| {
                Error::file(
                    source.path(),
                    format!(
                        "subject {subject} is in no split: neither the folder of the shard is called like one, nor is it in metadata/subject_splits.parquet"
                    ),
                )
            })?;
        }
        Ok(self.to)
    }
}

fn write(root: &Path, name: &str, shard: &Builder, codes: &Codes) -> Result<ShardReport> {
    let path = |folder: &str, ending: &str| -> Result<PathBuf> {
        let path = root.join(folder).join(format!("{name}.{ending}"));
        let parent = path.parent().unwrap_or(root);
        fs::create_dir_all(parent).map_err(|e| Error::io(parent, e))?;
        Ok(path)
    };
    fn bytes<T: arrow::datatypes::ArrowNativeType>(values: &[T]) -> &[u8] {
        arrow::datatypes::ToByteSlice::to_byte_slice(values)
    }
    let (rows, events, measurements) =
        ([shard.subjects.len()], [shard.times.len()], [shard.codes.len()]);
    write_tensors(
        path(TENSORS, "nrt")?,
        [
            ("dim1/bounds", Dtype::I64, &rows[..], bytes(&shard.event_ends)),
            ("dim1/time_delta_days", Dtype::F32, &events[..], bytes(&shard.deltas)),
            ("dim2/bounds", Dtype::I64, &events[..], bytes(&shard.measurement_ends)),
            ("dim2/code", Dtype::I64, &measurements[..], bytes(&shard.codes)),
            ("dim2/numeric_value", Dtype::F32, &measurements[..], bytes(&shard.values)),
        ],
        &SaveOptions::default(),
    )?;
    schemas::write(&path(SCHEMAS, "parquet")?, shard, &codes.token_type)?;
    let ends = std::iter::once(&0).chain(&shard.event_ends);
    Ok(ShardReport {
        name: name.to_string(),
        subjects: shard.subjects.len(),
        without_events: ends.zip(&shard.event_ends).filter(|(start, end)| start == end).count(),
        events: shard.times.len(),
        measurements: shard.codes.len(),
        statics: shard.static_codes.len(),
    })
}

/// Entries that the folder of a cohort may have.
const COHORT: [&str; 4] = ["data", "metadata", "tokenization", ".logs"];

fn check_output(root: &Path, out: &Path, overwrite: bool) -> Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(out).map_err(|e| Error::io(out, e))?;
    let names = entries
        .map(|entry| Ok(entry.map_err(|e| Error::io(out, e))?.file_name()))
        .collect::<Result<Vec<_>>>()?;
    if names.is_empty() {
        return Ok(());
    }
    if !overwrite {
        return Err(Error::Exists(out.to_path_buf()));
    }
    let canonical = |p: &Path| p.canonicalize().map_err(|e| Error::io(p, e));
    if canonical(root)?.starts_with(canonical(out)?) {
        return Err(Error::file(out, "the data set is read from there; write somewhere else"));
    }
    match names.iter().find(|n| !COHORT.iter().any(|c| *n == c)) {
        Some(other) => Err(Error::file(
            out,
            format!(
                "it holds {:?}, which is no part of a tensorized cohort, and is not replaced; remove it, or write somewhere else",
                other.to_string_lossy()
            ),
        )),
        // A raw data set has folders of the same names.
        None if !TensorizedCohort::is_at(out) => Err(Error::file(
            out,
            "it is no tensorized cohort (it has no tokenization/schemas), and is not replaced; remove it, or write somewhere else",
        )),
        None => Ok(()),
    }
}
