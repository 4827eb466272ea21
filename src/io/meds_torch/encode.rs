//! [`Encoder`]: the rows of a shard as tensors, divided by split.

use std::collections::BTreeMap;

use arrow::array::{Array, StringArray};

use super::Unknown;
use super::build::{Builder, Row, sort};
use super::codes::{Arithmetic, Codes, Entry};
use crate::error::{Error, Result};
use crate::io::meds::file::Source;
use crate::io::meds::{Chunk, MedsDataset, Place, Splits, Values, below_split};

/// The parts of shard `i` go to `names[i]`: one name, or one per split.
pub(super) fn names(dataset: &MedsDataset, splits: &Splits) -> Result<Vec<Vec<String>>> {
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
pub(super) struct Encoded {
    /// By name; only those that have rows, but one at least.
    pub(super) parts: Vec<(String, Builder)>,
    /// Measurements of codes that are not in the vocabulary.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Whether its rows were out of order.
    pub(super) sorted: bool,
}

/// Makes tensors of shards.
pub(super) struct Encoder<'a> {
    pub(super) codes: &'a Codes,
    pub(super) splits: &'a Splits,
    pub(super) unknown: Unknown,
}

/// Where rows go.
enum Target {
    /// To tensors, as long as they are in order.
    Build,
    /// To a list, to be sorted.
    Collect(Vec<Row>),
}

impl Encoder<'_> {
    /// Reads a shard, whose parts get `names`.
    pub(super) fn shard(&self, source: &Source, names: &[String]) -> Result<Encoded> {
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
