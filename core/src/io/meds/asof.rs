//! Labels with the history of their subject up to the time of the label.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow::datatypes::{Int64Type, UInt32Type};
use rayon::prelude::*;

use super::file::make_code_type;
use super::labels::Labels;
use super::shard::MedsShard;
use crate::error::{Error, Result};
use crate::memory::MemoryCharge;
use crate::table::{Column, EventHistory, RaggedTable};

/// Labels, each with the history of its subject up to and including the time of the label.
///
/// Memory holds events and measurements only once. For each label, it holds only the shard, the row
/// and the number of events. [`events`](Self::events) returns slices of the shard's buffers.
///
/// Labels whose subject is not in the data are omitted, but counted. A label without earlier events
/// has an empty history. Static facts (without a time) are never truncated.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::{AsOf, Labels, MedsDataset};
/// let data = MedsDataset::open("../tests/data/synthea-meds")?;
/// let shards = data.shards().map(|s| s.read(&Default::default())).collect::<Result<_, _>>()?;
/// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
/// let rows = AsOf::try_new(shards, &labels)?;
/// assert_eq!((rows.len(), rows.is_empty(), rows.unknown()), (1715, false, 0));
/// assert_eq!(rows.labels(), &labels);
/// let history = rows.events(100)?;
/// assert_eq!(history.num_rows(), 1);
/// assert!(history.axis_len(2)? > 0);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AsOf {
    labels: Labels,
    shards: Vec<MedsShard>,
    places: Vec<HistoryPosition>,
    unknown: usize,
    _charges: Arc<Vec<MemoryCharge>>,
}

/// The history of a subject up to the time of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryPosition {
    pub(super) shard: u32,
    pub(super) row: u32,
    /// Number of events of the subject at or before the time of the label.
    pub(super) events: u32,
}

#[derive(Clone, Copy, Debug)]
struct SubjectPlace {
    shard: u32,
    row: u32,
}

impl AsOf {
    /// Finds the history of every label.
    ///
    /// The event tables of all shards must have the same columns, among them `time`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use arrow::array::{Int64Array, TimestampMicrosecondArray};
    /// use serrate::io::meds::{AsOf, Labels, MedsDataset};
    /// # let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// # let shards = data.shards().map(|shard| shard.read(&Default::default()));
    /// # let shards = shards.collect::<Result<_, _>>()?;
    /// let ids = Int64Array::from(vec![-1, 8]); // no subject has the id -1
    /// let labels = Labels::try_new(ids, TimestampMicrosecondArray::from(vec![0, 0]), vec![])?;
    /// let rows = AsOf::try_new(shards, &labels)?;
    /// assert_eq!((rows.len(), rows.unknown()), (1, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a subject has rows in two shards, or the times of a subject are not ascending.
    pub fn try_new(mut shards: Vec<MedsShard>, labels: &Labels) -> Result<Self> {
        let charges = shards.iter().map(MedsShard::charge_memory).collect::<Result<Vec<_>>>()?;
        let subjects = map_subjects(&shards)?;
        let histories = shards.par_iter().map(find_event_history).collect::<Result<Vec<_>>>()?;
        let find = |subject: i64, time: i64| -> Result<Option<HistoryPosition>> {
            let Some(SubjectPlace { shard, row }) = subjects.get(&subject).copied() else {
                return Ok(None);
            };
            let known = histories[shard as usize].count_up_to(row as usize, time);
            let events = to_checked_u32(known, "events of a subject")?;
            Ok(Some(HistoryPosition { shard, row, events }))
        };
        let (ids, due) = (labels.subject_ids().values(), labels.prediction_times().values());
        let found = ids
            .par_iter()
            .zip(due.par_iter())
            .map(|(subject, time)| find(*subject, *time))
            .collect::<Result<Vec<_>>>()?;
        let places: Vec<HistoryPosition> = found.iter().flatten().copied().collect();
        let unknown = found.len() - places.len();
        let labels = match unknown {
            0 => labels.clone(),
            _ => labels.filter(&found.iter().map(|p| Some(p.is_some())).collect())?,
        };
        share_dictionaries(&mut shards)?;
        Ok(Self { labels, shards, places, unknown, _charges: Arc::new(charges) })
    }

    /// Returns the number of labels whose subject is in the data.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether no label has a subject in the data.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the labels whose subject is in the data, in their original order.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the number of labels whose subject is not in the data.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// Returns the number of events at or before the time of the label at index `label`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{AsOf, Labels, MedsDataset};
    /// # let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// # let shards = data.shards().map(|shard| shard.read(&Default::default()));
    /// # let shards = shards.collect::<Result<_, _>>()?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let rows = AsOf::try_new(shards, &labels)?;
    /// assert_eq!(rows.num_events(100)?, rows.events(100)?.axis_len(1)?);
    /// assert!(rows.num_events(rows.len()).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the label does not exist.
    pub fn num_events(&self, label: usize) -> Result<usize> {
        Ok(self.find_label_position(label)?.events as usize)
    }

    /// Returns the events at or before the time of the label at index `label`, as a table of one
    /// row that shares the buffers of the shard.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{AsOf, Labels, MedsDataset};
    /// # let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// # let shards = data.shards().map(|shard| shard.read(&Default::default()));
    /// # let shards = shards.collect::<Result<_, _>>()?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let rows = AsOf::try_new(shards, &labels)?;
    /// let history = rows.events(100)?;
    /// assert_eq!((history.num_rows(), history.axis_len(1)?), (1, rows.num_events(100)?));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the label does not exist.
    pub fn events(&self, label: usize) -> Result<RaggedTable> {
        let place = self.find_label_position(label)?;
        let events = &self.shards[place.shard as usize].events;
        events.row(place.row as usize)?.events(0..place.events as usize)?.to_table()
    }

    /// Returns the static facts of a label's subject as a table of one row that shares the buffers
    /// of the shard.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{AsOf, Labels, MedsDataset};
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let shards = data.shards().map(|s| s.read(&Default::default())).collect::<Result<_, _>>()?;
    /// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let rows = AsOf::try_new(shards, &labels)?;
    /// assert_eq!((rows.is_empty(), rows.labels().len()), (false, 1715));
    /// assert_eq!(rows.events(100)?.axis_len(1)?, rows.num_events(100)?);
    /// assert_eq!(rows.statics(100)?.num_rows(), 1);
    /// // The codes of at most the last two events of ten labels.
    /// let codes = rows.last("code", 2, 100..110)?;
    /// assert!(codes.lengths(1)?.iter().all(|events| *events <= 2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the label does not exist.
    pub fn statics(&self, label: usize) -> Result<RaggedTable> {
        let place = self.find_label_position(label)?;
        let row = place.row as usize;
        self.shards[place.shard as usize].statics.slice(row, 1)
    }

    fn find_label_position(&self, label: usize) -> Result<HistoryPosition> {
        self.places.get(label).copied().ok_or_else(|| Error::OutOfRange {
            axis: 0,
            index: i64::try_from(label).unwrap_or(i64::MAX),
            size: self.len(),
        })
    }

    pub(super) fn shards(&self) -> &[MedsShard] {
        &self.shards
    }

    /// Returns the history of a label. Panics if the label does not exist.
    pub(super) fn locate_label(&self, label: usize) -> HistoryPosition {
        self.places[label]
    }
}

fn map_subjects(shards: &[MedsShard]) -> Result<HashMap<i64, SubjectPlace>> {
    let mut places = HashMap::with_capacity(shards.iter().map(|s| s.events.num_rows()).sum());
    for (number, shard) in shards.iter().enumerate() {
        let shard_number = to_checked_u32(number, "shards")?;
        let ids = shard.events.column("subject_id")?.values();
        for (row, id) in ids.as_primitive::<Int64Type>().values().iter().enumerate() {
            match places.entry(*id) {
                Entry::Vacant(entry) => {
                    let row = to_checked_u32(row, "subjects of a shard")?;
                    entry.insert(SubjectPlace { shard: shard_number, row });
                }
                Entry::Occupied(entry) => {
                    let first = entry.get().shard;
                    return Err(Error::invalid(format!(
                        "subject {id} has rows in the shards {} and {}, but its history must be in one shard; merge the files",
                        shards[first as usize].name, shard.name
                    )));
                }
            }
        }
    }
    Ok(places)
}

fn find_event_history(shard: &MedsShard) -> Result<EventHistory> {
    EventHistory::try_new(shard.events.layout(1)?.clone(), shard.read_event_times()?).map_err(|row| {
        let ids = shard.events.column("subject_id").map(Column::values);
        let id = ids.map_or(0, |ids| ids.as_primitive::<Int64Type>().value(row));
        Error::invalid(format!(
            "shard {}: the times of subject {id} are not ascending, so its history at a given time is undefined; sort its events",
            shard.name
        ))
    })
}

fn to_checked_u32(number: usize, what: &str) -> Result<u32> {
    u32::try_from(number)
        .map_err(|_| Error::invalid(format!("the number of {what} exceeds the maximum of 2^32 - 1; read fewer shards or labels at a time")))
}

/// Gives all shards one dictionary of codes, so that rows of several shards can be concatenated
/// with their dictionary keys unchanged.
fn share_dictionaries(shards: &mut [MedsShard]) -> Result<()> {
    if shards.len() < 2 {
        return Ok(());
    }
    let mut events: Vec<&mut RaggedTable> = Vec::with_capacity(shards.len());
    let mut statics = Vec::with_capacity(shards.len());
    for shard in shards {
        events.push(&mut shard.events);
        statics.push(&mut shard.statics);
    }
    share_codes(&mut events)?;
    share_codes(&mut statics)
}

fn share_codes(tables: &mut [&mut RaggedTable]) -> Result<()> {
    let names: Vec<String> = tables[0]
        .columns()
        .iter()
        .filter(|c| *c.data_type() == make_code_type())
        .map(|c| c.name().to_owned())
        .collect();
    for name in names {
        let arrays = tables
            .iter()
            .map(|t| Ok(t.column(&name)?.values().as_dictionary::<UInt32Type>().clone()))
            .collect::<Result<Vec<_>>>()?;
        let one = &arrays[0];
        if arrays.iter().all(|a| Arc::ptr_eq(a.values(), one.values())) {
            continue;
        }
        for (table, values) in tables.iter_mut().zip(unify_dictionaries(&arrays)?) {
            let columns = table
                .columns()
                .iter()
                .map(|c| match c.name() == name {
                    false => c.clone(),
                    true => {
                        Column::with_field(Arc::clone(c.field()), c.axis(), Arc::clone(&values))
                            .with_list_nulls(c.list_nulls().to_vec())
                    }
                })
                .collect();
            **table = table.with_columns(columns)?;
        }
    }
    Ok(())
}

fn unify_dictionaries(arrays: &[DictionaryArray<UInt32Type>]) -> Result<Vec<ArrayRef>> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut texts: Vec<&str> = Vec::new();
    let mut maps: Vec<Vec<u32>> = Vec::with_capacity(arrays.len());
    for array in arrays {
        let values = array.values().as_string::<i32>();
        let mut map = Vec::with_capacity(values.len());
        for text in values.iter().map(Option::unwrap_or_default) {
            let next = to_checked_u32(texts.len(), "codes")?;
            let number = *numbers.entry(text).or_insert_with(|| {
                texts.push(text);
                next
            });
            map.push(number);
        }
        maps.push(map);
    }
    let values: ArrayRef = Arc::new(StringArray::from(texts));
    arrays
        .par_iter()
        .zip(&maps)
        .map(|(array, map)| {
            // The dictionary key of a NULL is arbitrary and may be outside the dictionary: map it
            // to 0.
            let at = |key: u32| map.get(key as usize).copied().unwrap_or(0);
            let keys: PrimitiveArray<UInt32Type> = array.keys().unary(at);
            Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(&values))?) as ArrayRef)
        })
        .collect()
}
