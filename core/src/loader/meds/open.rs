//! Opens a loader of health records over a folder: a tensorized cohort or a MEDS data set.

use std::path::Path;

use arrow::array::{AsArray, BooleanArray};
use arrow::datatypes::Int64Type;

use super::MedsLoader;
use super::options::{MedsOptions, StaticsMode};
use super::subjects::ShardSubjects;
use crate::error::{Error, Result};
use crate::io::meds::{Labels, MedsDataset, MedsReadOptions, SplitSource, SubjectSplits};
use crate::io::meds_torch::{CohortShard, TensorizeOptions, TensorizedCohort, tensorize_in_memory};
use crate::io::natural_order::make_text_key;

impl MedsLoader {
    /// Opens a folder: a [tensorized cohort](TensorizedCohort), written by this crate or by
    /// meds-torch-data, or a [MEDS data set](MedsDataset), whose measurements are read into memory
    /// now.
    ///
    /// `split` selects subjects: `train`, `tuning`, `held_out` or any other split; `None` selects
    /// all. A cohort has a folder per split; in a MEDS data set, `metadata/subject_splits.parquet`
    /// can also assign the subjects. The tensors of a cohort are memory-mapped; pages outside all
    /// windows are not read.
    ///
    /// If [`compat`](MedsOptions::compat) is set, a MEDS data set is read like the cohort that
    /// [`tensorize`](crate::io::meds_torch::tensorize) writes for it with default options.
    /// Measurements whose code is not in the vocabulary are omitted and
    /// [counted](Self::dropped_measurements), subjects without other measurements are omitted, and
    /// without `code/vocab_index` the vocabulary comes from the train split. If `compat` is not
    /// set, codes outside the vocabulary have the token 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64).shuffle(7);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!((loader.num_subjects(), loader.num_items()), (20, 20));
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!((batch.len(), batch.tensor("subject_id")?.shape()), (8, &[8][..]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a file is unreadable or damaged, or a split is empty; or as [`try_new`](Self::try_new).
    pub fn open<'a>(
        root: impl AsRef<Path>,
        split: impl Into<Option<&'a str>>,
        labels: Option<&Labels>,
        options: MedsOptions,
    ) -> Result<Self> {
        let (root, split) = (root.as_ref(), split.into());
        options.to_loader()?;
        let mut dropped = 0;
        let (mut shards, names) = match TensorizedCohort::is_at(root) {
            true => {
                let cohort = TensorizedCohort::open(root)?;
                let names = cohort.shards().iter().map(|s| s.name().to_owned()).collect();
                (read_cohort(&cohort, split)?, names)
            }
            false if options.compat => {
                let data = MedsDataset::open(root)?;
                let tables = tensorize_in_memory(&data, split, &TensorizeOptions::default())?;
                dropped = tables.unknown.values().sum();
                (tables.shards.into_iter().map(ShardSubjects::from).collect(), tables.names)
            }
            false => {
                let data = MedsDataset::open(root)?;
                let names: Vec<String> = data.shards().map(|s| s.name().to_owned()).collect();
                (read_data_set(&data, split)?, names)
            }
        };
        if options.statics == StaticsMode::Omit {
            shards.iter_mut().for_each(|shard| shard.statics = None);
        }
        if options.compat {
            shards.sort_by_cached_key(|shard| make_text_key(&format!("{}.parquet", shard.name)));
        }
        if shards.is_empty() {
            return Err(Error::file(
                root,
                match split {
                    Some(split) => format!(
                        "the folder has no shard of the split {split:?}; the shards are {}; choose the split of one of them",
                        names.join(", ")
                    ),
                    None => "the folder has no shards; give the folder of a MEDS data set or of a tensorized cohort".into(),
                },
            ));
        }
        let labels = labels.map(Labels::to_batch).transpose()?;
        Ok(Self { dropped, ..Self::try_new(shards, labels.as_ref(), options)? })
    }
}

fn read_cohort(cohort: &TensorizedCohort, split: Option<&str>) -> Result<Vec<ShardSubjects>> {
    let wanted = |shard: &&CohortShard| split.is_none_or(|split| shard.split() == split);
    cohort
        .shards()
        .iter()
        .filter(wanted)
        .map(|shard| Ok(ShardSubjects::from(shard.read()?)))
        .collect()
}

fn read_data_set(data: &MedsDataset, split: Option<&str>) -> Result<Vec<ShardSubjects>> {
    let splits = SubjectSplits::read_splits(data.root())?;
    let read = MedsReadOptions { columns: Some(Vec::new()), ..MedsReadOptions::default() };
    let mut shards = Vec::new();
    for shard in data.shards() {
        let filter_subjects = match (split, splits.find_shard_split(shard.name())) {
            (None, _) => false,
            (Some(split), SplitSource::Split(name)) if name == split => false,
            (Some(_), SplitSource::Split(_)) => continue,
            (Some(_), SplitSource::BySubject) => true,
            (Some(split), SplitSource::Unknown) => {
                return Err(Error::file(
                    shard.path(),
                    format!(
                        "the split of the shard is unknown (neither the folder of the shard nor metadata/subject_splits.parquet names it), so the split {split:?} cannot be selected; add the subjects of the shard to subject_splits.parquet"
                    ),
                ));
            }
        };
        let mut subjects = ShardSubjects::from(shard.read(&read)?);
        if filter_subjects {
            let ids = subjects.events.column("subject_id")?.values().as_primitive::<Int64Type>();
            let keep: BooleanArray = ids
                .values()
                .iter()
                .map(|id| {
                    let name = splits.find_split(*id).and_then(|i| splits.names().get(i));
                    Some(name.is_some_and(|name| Some(name.as_str()) == split))
                })
                .collect();
            if keep.true_count() == 0 {
                continue;
            }
            subjects.events = subjects.events.filter(&keep)?;
            subjects.statics = subjects.statics.map(|s| s.filter(&keep)).transpose()?;
        }
        shards.push(subjects);
    }
    Ok(shards)
}
