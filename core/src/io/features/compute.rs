//! Computes the features of labels from the histories of their subjects.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, DictionaryArray, Float32Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Float32Type, UInt32Type};

use super::feature_rows::FeatureRows;
use super::feature_spec::{FeatureKey, FeatureSpec, WindowSpan};
use super::feature_state::FeatureState;
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::io::meds::MedsShard;
use crate::kernels::between::ClosedEnds;
use crate::memory::MemoryCharge;
use crate::table::RaggedTable;

#[derive(Clone, Copy, Debug)]
pub(super) struct LabelAt {
    pub(super) row: usize,
    pub(super) time: i64,
    /// Index of the label among the labels of all shards.
    pub(super) label: usize,
}

/// The labels of the subjects of one shard, with the histories of the subjects.
///
/// Labels are ordered by subject, time and index. [`features`](Self::features) computes one range
/// of labels at a time, so the memory for results does not depend on the number of labels.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::features::{FeatureKey, FeatureSpec, LabelFeatures};
/// use serrate::io::meds::Labels;
/// use serrate::io::meds_torch::MedsFolder;
/// let data = MedsFolder::open("../tests/data/synthea-meds")?;
/// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
/// let keys = vec![FeatureKey::Prefix("LAB//".into())];
/// let spec = FeatureSpec::try_new(keys, vec!["30d".parse()?], vec!["count".parse()?])?;
/// let shard = LabelFeatures::new(data, labels, spec).read(0)?;
/// let mut labels = 0;
/// for block in shard.blocks(100) {
///     labels += shard.features(block)?.len();
/// }
/// assert_eq!(labels, shard.num_labels());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FeatureShard {
    _charge: Arc<MemoryCharge>,
    spec: Arc<FeatureSpec>,
    labels: Vec<LabelAt>,
    /// `subjects` has one list of events per subject, `events` one list of measurements per event.
    subjects: Layout,
    events: Layout,
    times: ScalarBuffer<i64>,
    measurements: SubjectMeasurements,
    /// Static facts per subject; `None` if no window is [`WindowSpan::Static`].
    statics: Option<(Layout, SubjectMeasurements)>,
}

#[derive(Clone, Debug)]
struct SubjectMeasurements {
    codes: DictionaryArray<UInt32Type>,
    values: Option<Float32Array>,
    /// For each distinct code, the end of its range in `keys`, which starts at the previous end.
    ends: Vec<usize>,
    /// For each distinct code, the indices in [`FeatureSpec::keys`] of the keys that match it.
    keys: Vec<u32>,
}

impl SubjectMeasurements {
    fn try_new(table: &RaggedTable, prefix: &str, spec: &FeatureSpec) -> Result<Self> {
        let column = |name: &str| table.column(&format!("{prefix}{name}"));
        let codes = column("code")?.values();
        let wrong_codes = || {
            Error::type_of(
                format!("column {prefix}code"),
                "Dictionary(UInt32, Utf8), as codes of MEDS data are read (convert the column to this type)",
                codes.data_type(),
            )
        };
        let dictionary = codes.as_dictionary_opt::<UInt32Type>().ok_or_else(wrong_codes)?;
        let values = column("numeric_value")?.values();
        let Some(values) = values.as_primitive_opt::<Float32Type>() else {
            return Err(Error::type_of(
                format!("column {prefix}numeric_value"),
                "Float32, as in MEDS data (convert the column to Float32)",
                values.data_type(),
            ));
        };
        let texts = dictionary.values().as_string_opt::<i32>().ok_or_else(wrong_codes)?;
        let prefixes: Vec<usize> = (0..spec.keys().len())
            .filter(|k| matches!(spec.keys()[*k], FeatureKey::Prefix(_)))
            .collect();
        let by_code: std::collections::HashMap<&str, usize> = spec
            .keys()
            .iter()
            .enumerate()
            .filter_map(|(k, key)| match key {
                FeatureKey::Code(code) => Some((code.as_ref(), k)),
                FeatureKey::Prefix(_) => None,
            })
            .collect();
        let (mut ends, mut keys) = (Vec::with_capacity(texts.len()), Vec::new());
        for text in texts {
            if let Some(text) = text {
                let own = by_code.get(text).copied();
                let all = prefixes.iter().copied().filter(|k| spec.keys()[*k].matches_code(text));
                for key in own.into_iter().chain(all) {
                    keys.push(u32::try_from(key).unwrap_or(u32::MAX));
                }
            }
            ends.push(keys.len());
        }
        Ok(Self {
            codes: dictionary.clone(),
            values: (values.null_count() < values.len()).then(|| values.clone()),
            ends,
            keys,
        })
    }

    #[inline]
    fn keys(&self, at: usize) -> &[u32] {
        if self.codes.is_null(at) {
            return &[];
        }
        let code = self.codes.keys().value(at) as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.keys[start..self.ends[code]]
    }

    #[inline]
    fn read_value_at(&self, at: usize) -> Option<f32> {
        self.values.as_ref().filter(|v| v.is_valid(at)).map(|v| v.value(at))
    }
}

impl FeatureShard {
    pub(super) fn try_new(
        shard: &MedsShard,
        spec: Arc<FeatureSpec>,
        labels: Vec<LabelAt>,
    ) -> Result<Self> {
        let (times, subjects) = (shard.read_event_times()?, shard.events.layout(1)?.clone());
        for label in &labels {
            if !times[subjects.range(label.row)].is_sorted() {
                return Err(Error::invalid(format!(
                    "shard {}: the times of the subject in row {} are not ascending, so its history at a given time is undefined; sort its events",
                    shard.name, label.row
                )));
            }
        }
        let statics = match spec.windows().iter().any(|w| w.span == WindowSpan::Static) {
            false => None,
            true => Some((
                shard.statics.layout(1)?.clone(),
                SubjectMeasurements::try_new(&shard.statics, "static_", &spec)?,
            )),
        };
        Ok(Self {
            labels,
            subjects,
            events: shard.events.layout(2)?.clone(),
            times,
            measurements: SubjectMeasurements::try_new(&shard.events, "", &spec)?,
            statics,
            spec,
            _charge: Arc::new(shard.charge_memory()?),
        })
    }

    /// Returns the number of labels.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::features::LabelFeatures;
    /// # use serrate::io::meds::Labels;
    /// # use serrate::io::meds_torch::MedsFolder;
    /// # let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// assert_eq!(features.read(3)?.num_labels(), 105); // of tuning/0
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_labels(&self) -> usize {
        self.labels.len()
    }

    /// Divides the labels into ranges of up to `size` labels.
    ///
    /// All labels of a subject are in one range, unless the subject has more than `size` labels.
    /// Returns no range if there are no labels.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::features::LabelFeatures;
    /// # use serrate::io::meds::Labels;
    /// # use serrate::io::meds_torch::MedsFolder;
    /// # let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// let shard = features.read(0)?;
    /// let labels: usize = shard.blocks(100).iter().map(|block| block.len()).sum();
    /// assert_eq!(labels, shard.num_labels());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn blocks(&self, size: usize) -> Vec<Range<usize>> {
        let size = size.max(1);
        let (mut out, mut start) = (Vec::new(), 0);
        while start < self.labels.len() {
            let most = (start.saturating_add(size)).min(self.labels.len());
            let mut end = most;
            let borders = |end: usize| {
                end == self.labels.len() || self.labels[end].row != self.labels[end - 1].row
            };
            while end > start + 1 && !borders(end) {
                end -= 1;
            }
            // The range has only one subject, with more than `size` labels: divide its labels.
            if !borders(end) {
                end = most;
            }
            out.push(start..end);
            start = end;
        }
        out
    }

    /// Computes the features of a range of labels.
    ///
    /// The division into ranges does not change the result.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::io::features::{FeatureKey, FeatureSpec};
    /// use serrate::io::features::LabelFeatures;
    /// # use serrate::io::meds::Labels;
    /// # use serrate::io::meds_torch::MedsFolder;
    /// # let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// # let keys = vec![FeatureKey::Prefix("LAB//".into())];
    /// # let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec);
    /// let shard = features.read(0)?;
    /// assert_eq!(shard.features(0..10)?.len(), 10);
    /// assert!(shard.features(0..shard.num_labels() + 1).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range ends after the last label.
    pub fn features(&self, labels: Range<usize>) -> Result<FeatureRows> {
        let Some(labels) = self.labels.get(labels.clone()) else {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(labels.end).unwrap_or(i64::MAX),
                size: self.labels.len(),
            });
        };
        let mut scratch = FeatureScratch::new(&self.spec);
        let mut rows = FeatureRows::default();
        for of_subject in labels.chunk_by(|a, b| a.row == b.row) {
            self.add_subject(of_subject, &mut scratch, &mut rows);
        }
        Ok(rows)
    }

    fn add_subject(
        &self,
        labels: &[LabelAt],
        scratch: &mut FeatureScratch<'_>,
        out: &mut FeatureRows,
    ) {
        let Some(row) = labels.first().map(|l| l.row) else { return };
        let events = self.subjects.range(row);
        let times = &self.times[events.clone()];
        if let Some((lists, facts)) = &self.statics {
            for w in scratch.list_wanted_windows(|span| span == WindowSpan::Static) {
                lists
                    .range(row)
                    .for_each(|i| scratch.add(w, facts.keys(i), facts.read_value_at(i), 0));
            }
        }
        // Number of events of the subject that have been added to the windows of `WindowSpan::All`.
        let mut held = 0;
        for label in labels {
            let end = times.partition_point(|t| match self.spec.window_closure() {
                ClosedEnds::Both | ClosedEnds::Right => *t <= label.time,
                ClosedEnds::Left | ClosedEnds::Neither => *t < label.time,
            });
            for (w, window) in self.spec.windows().iter().enumerate() {
                let start = match window.span {
                    WindowSpan::Static => continue,
                    WindowSpan::All => held,
                    WindowSpan::Last(length) => {
                        let from = label.time.checked_sub(length);
                        from.map_or(0, |from| {
                            times.partition_point(|t| match self.spec.window_closure() {
                                ClosedEnds::Both | ClosedEnds::Left => *t < from,
                                ClosedEnds::Right | ClosedEnds::Neither => *t <= from,
                            })
                        })
                    }
                };
                let from = start.min(end);
                for (time, event) in times[from..end].iter().zip(events.start + from..) {
                    for at in self.events.range(event) {
                        let keys = self.measurements.keys(at);
                        if !keys.is_empty() {
                            scratch.add(w, keys, self.measurements.read_value_at(at), *time);
                        }
                    }
                }
            }
            held = end;
            out.labels.push(label.label);
            scratch.emit_label(out);
        }
        scratch.clear();
    }
}

/// Running aggregates of the current subject, per window and feature key of its history.
struct FeatureScratch<'a> {
    spec: &'a FeatureSpec,
    /// Position in `keys` of each feature key, or [`NONE`] if the current subject lacks it.
    slots: Vec<u32>,
    /// Feature keys of the current subject, as indices of `spec.keys()`, in order of first
    /// occurrence.
    keys: Vec<u32>,
    /// For each element of the field `keys`: its states, one per window.
    states: Vec<FeatureState>,
    /// Positions in `keys`, ordered by feature key; outdated if shorter than `keys`.
    sorted: Vec<u32>,
    slope: bool,
}

const NONE: u32 = u32::MAX;

impl<'a> FeatureScratch<'a> {
    fn new(spec: &'a FeatureSpec) -> Self {
        Self {
            spec,
            slots: vec![NONE; spec.keys().len()],
            keys: Vec::new(),
            states: Vec::new(),
            sorted: Vec::new(),
            slope: spec.aggregates().contains(&super::feature_spec::FeatureAggregate::Slope),
        }
    }

    fn list_wanted_windows(&self, wanted: impl Fn(WindowSpan) -> bool) -> Vec<usize> {
        let windows = self.spec.windows();
        (0..windows.len()).filter(|w| wanted(windows[*w].span)).collect()
    }

    #[inline]
    fn add(&mut self, window: usize, keys: &[u32], value: Option<f32>, time: i64) {
        let windows = self.spec.windows().len();
        for key in keys {
            let slot = &mut self.slots[*key as usize];
            if *slot == NONE {
                // `self.keys` holds distinct keys, and fewer than 2^32 keys exist.
                *slot = u32::try_from(self.keys.len()).unwrap_or(NONE);
                self.keys.push(*key);
                self.states.resize(self.keys.len() * windows, FeatureState::default());
            }
            self.states[*slot as usize * windows + window].add(value, time, self.slope);
        }
    }

    /// Appends the features of one label to `out`, then clears the states of windows of fixed
    /// length: such a window begins at another time for each label.
    fn emit_label(&mut self, out: &mut FeatureRows) {
        let (windows, aggregates) = (self.spec.windows(), self.spec.aggregates());
        if self.sorted.len() < self.keys.len() {
            self.sorted = (0..).take(self.keys.len()).collect();
            self.sorted.sort_unstable_by_key(|slot| self.keys[*slot as usize]);
        }
        let before = out.features.len();
        for slot in &self.sorted {
            let key = self.keys[*slot as usize] as usize;
            for (w, window) in windows.iter().enumerate() {
                let state = &mut self.states[*slot as usize * windows.len() + w];
                if state.count == 0 {
                    continue;
                }
                let first = (key * windows.len() + w) * aggregates.len();
                for (a, aggregate) in aggregates.iter().enumerate() {
                    if let Some(value) = state.get(*aggregate) {
                        // `FeatureSpec` has fewer than 2^32 features, so the index fits.
                        out.features.push(u32::try_from(first + a).unwrap_or(u32::MAX));
                        out.values.push(value);
                    }
                }
                if matches!(window.span, WindowSpan::Last(_)) {
                    *state = FeatureState::default();
                }
            }
        }
        out.counts.push(out.features.len() - before);
    }

    fn clear(&mut self) {
        for key in self.keys.drain(..) {
            self.slots[key as usize] = NONE;
        }
        self.states.clear();
        self.sorted.clear();
    }
}
