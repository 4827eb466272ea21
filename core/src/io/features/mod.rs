//! Features of labels for tabular models. A label is an outcome to predict for a subject at a given
//! time. Its features are aggregates of the values of each code (or of all codes with a prefix) in
//! windows of time before the label.
//!
//! A [`FeatureSpec`] lists the features. [`LabelFeatures`] reads the data shard by shard;
//! [`FeatureRows`] holds the features of some labels sparsely, because only a few of the codes
//! occur before each label. [`FeatureStore`] stores features on disk, reads them in the order of
//! the labels, and writes sparse files.

mod compute;
mod feature_rows;
mod feature_spec;
mod feature_state;
mod feature_store;
mod feature_table;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::error::{Error, Result};
use crate::io::meds::{Labels, MedsReadOptions, NeededColumns};
use crate::io::meds_torch::MedsFolder;
use crate::locks::lock_mutex;
use compute::LabelAt;
use feature_spec::WindowSpan;

pub use compute::FeatureShard;
pub use feature_rows::FeatureRows;
pub use feature_spec::{FeatureAggregate, FeatureKey, FeatureSpec, FeatureWindow};
pub use feature_store::FeatureStore;
pub use feature_table::FeatureForm;

/// Computes the features of labels from a MEDS data set or a tensorized cohort.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::features::{FeatureKey, FeatureSpec, LabelFeatures};
/// use serrate::io::meds::Labels;
/// use serrate::io::meds_torch::MedsFolder;
/// let data = MedsFolder::open("../tests/data/synthea-meds")?;
/// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
/// let keys = vec![FeatureKey::Prefix("LAB//".into()), FeatureKey::Prefix("DRUG//".into())];
/// let spec = FeatureSpec::try_new(keys, vec!["30d".parse()?, "all".parse()?], vec!["count".parse()?])?;
/// let features = LabelFeatures::new(data, labels, spec);
/// assert_eq!((features.labels().len(), features.num_shards()), (1715, 4));
/// assert_eq!(features.folder().num_shards(), 4);
/// let mut labels = 0;
/// for shard in 0..features.num_shards() {
///     let shard = features.read(shard)?;
///     for block in shard.blocks(256) {
///         labels += shard.features(block)?.len();
///     }
/// }
/// assert_eq!((labels, features.unknown()), (1715, Some(0)));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct LabelFeatures {
    folder: MedsFolder,
    labels: Labels,
    spec: Arc<FeatureSpec>,
    /// Time and index of each label. Labels are ordered by subject, then time, then index.
    order: Vec<(i64, usize)>,
    /// For each subject with labels (by its ID), the range of the subject's labels in the field
    /// `order`.
    subjects: HashMap<i64, Range<usize>>,
    seen: Mutex<SeenSubjects>,
}

/// Whether each shard has been read, and the shard of each labeled subject found so far.
#[derive(Debug, Default)]
struct SeenSubjects {
    shards: Vec<bool>,
    subjects: HashMap<i64, usize>,
}

impl LabelFeatures {
    /// Prepares the features of labels; nothing is read yet.
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
    /// assert_eq!((features.labels().len(), features.num_shards()), (1715, 4));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new(folder: MedsFolder, labels: Labels, spec: FeatureSpec) -> Self {
        let ids = labels.subject_ids().values();
        let times = labels.prediction_times().values();
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by_key(|label| (ids[*label], times[*label]));
        let mut subjects = HashMap::new();
        let mut start = 0;
        for of_subject in order.chunk_by(|a, b| ids[*a] == ids[*b]) {
            let end = start + of_subject.len();
            subjects.insert(ids[of_subject[0]], start..end);
            start = end;
        }
        let order = order.into_iter().map(|label| (times[label], label)).collect();
        let seen =
            SeenSubjects { shards: vec![false; folder.num_shards()], subjects: HashMap::new() };
        Self { folder, labels, spec: Arc::new(spec), order, subjects, seen: Mutex::new(seen) }
    }

    /// Returns the specification of the features.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureAggregate, FeatureKey, FeatureSpec, LabelFeatures};
    /// use serrate::io::meds::{Labels, Vocabulary};
    /// use serrate::io::meds_torch::MedsFolder;
    /// use serrate::kernels::between::ClosedEnds;
    /// let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let keys = FeatureSpec::keys_of(&Vocabulary::from_codes(["MEDS_BIRTH"])?);
    /// let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let features = LabelFeatures::new(data, labels, spec.closed(ClosedEnds::Both));
    /// assert_eq!((features.labels().len(), features.folder().num_shards()), (1715, features.num_shards()));
    /// let spec = features.spec();
    /// assert_eq!((spec.keys().len(), spec.windows().len(), spec.aggregates().len()), (1, 1, 1));
    /// assert_eq!((spec.name(0).as_str(), spec.names()?.num_rows()), ("MEDS_BIRTH/all/count", 1));
    /// let (key, _, aggregate) = spec.parts(0);
    /// assert_eq!(key, &FeatureKey::Code("MEDS_BIRTH".into()));
    /// assert!(aggregate.is_zero_of_nothing() && !FeatureAggregate::Mean.is_zero_of_nothing());
    /// assert_eq!(aggregate.data_type(), arrow::datatypes::DataType::Int64);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn spec(&self) -> &FeatureSpec {
        &self.spec
    }

    /// Returns the labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the data set or cohort from which the features are computed.
    pub fn folder(&self) -> &MedsFolder {
        &self.folder
    }

    /// Returns the number of shards.
    pub fn num_shards(&self) -> usize {
        self.folder.num_shards()
    }

    /// Returns the number of labels whose subject is not in the data; `None` until all shards were
    /// read.
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
    /// assert_eq!(features.unknown(), None);
    /// for shard in 0..features.num_shards() {
    ///     features.read(shard)?;
    /// }
    /// assert_eq!(features.unknown(), Some(0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn unknown(&self) -> Option<usize> {
        let seen = lock_mutex(&self.seen);
        let known = || self.subjects.iter().filter(|(id, _)| seen.subjects.contains_key(id));
        seen.shards
            .iter()
            .all(|read| *read)
            .then(|| self.labels.len() - known().map(|(_, labels)| labels.len()).sum::<usize>())
    }

    /// Reads a shard: the codes and values of its subjects, and the labels of the subjects.
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
    /// assert_eq!(features.read(0)?.num_labels(), 428); // of held_out/0
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shard cannot be read, or a labeled subject is in two shards or has descending times.
    pub fn read(&self, shard: usize) -> Result<FeatureShard> {
        let options = MedsReadOptions { columns: Some(Vec::new()), ..MedsReadOptions::default() };
        let mut needed = vec!["code", "numeric_value"];
        if self.spec.windows().iter().any(|w| w.span == WindowSpan::Static) {
            needed.extend(["static_code", "static_numeric_value"]);
        }
        let data = self.folder.read_needed(shard, &options, NeededColumns(Some(&needed)))?;
        let ids = data.events.column("subject_id")?.values();
        let Some(ids) = ids.as_primitive_opt::<Int64Type>() else {
            return Err(Error::type_of(
                "column subject_id",
                "Int64, as in MEDS data (convert the column to Int64)",
                ids.data_type(),
            ));
        };
        let mut labels = Vec::new();
        for (row, id) in ids.values().iter().enumerate() {
            let Some(own) = self.subjects.get(id) else { continue };
            self.claim_subject(*id, shard)?;
            let at = |(time, label): &(i64, usize)| LabelAt { row, time: *time, label: *label };
            labels.extend(self.order[own.clone()].iter().map(at));
        }
        let shard_of_labels = FeatureShard::try_new(&data, Arc::clone(&self.spec), labels)?;
        let mut seen = lock_mutex(&self.seen);
        if let Some(read) = seen.shards.get_mut(shard) {
            *read = true;
        }
        Ok(shard_of_labels)
    }

    /// Returns an error if another shard with the subject was read before.
    fn claim_subject(&self, id: i64, shard: usize) -> Result<()> {
        let mut seen = lock_mutex(&self.seen);
        let first = *seen.subjects.entry(id).or_insert(shard);
        if first == shard {
            return Ok(());
        }
        let (a, b) = (first.min(shard), first.max(shard));
        Err(Error::file(
            self.folder.root(),
            format!(
                "subject {id} is in the shards {a} and {b} (counted from 0), but its history must be in one shard; merge the files"
            ),
        ))
    }
}
