use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::TensorizedCohort;
use crate::error::{Error, Result};
use crate::io::meds::{MedsDataset, MedsReadOptions, MedsShard, NeededColumns, Vocabulary};

/// A MEDS data set or a tensorized cohort; both are read as the same tables.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds_torch::MedsFolder;
/// for path in ["../tests/data/synthea-meds", "../tests/data/synthea-meds-torch-data"] {
///     let folder = MedsFolder::open(path)?;
///     let shard = folder.read(0, &Default::default())?;
///     assert_eq!(folder.root(), std::path::Path::new(path));
///     assert!(shard.events.num_rows() > 0 && folder.vocabulary()?.len() > 0);
/// }
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum MedsFolder {
    /// A MEDS data set: files with one row per measurement.
    Meds(MedsDataset),
    /// A tensorized cohort: tensors with their schema files.
    Cohort(Arc<TensorizedCohort>),
}

impl MedsFolder {
    /// Opens a folder, which may be a MEDS data set or a tensorized cohort.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let data = MedsFolder::open("../tests/data/synthea-meds")?;
    /// let cohort = MedsFolder::open("../tests/data/synthea-meds-torch-data")?;
    /// assert!(matches!((data, cohort), (MedsFolder::Meds(_), MedsFolder::Cohort(_))));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the folder is neither, or one of its files cannot be read.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        Ok(match TensorizedCohort::is_at(&root) {
            true => Self::Cohort(Arc::new(TensorizedCohort::open(root)?)),
            false => Self::Meds(MedsDataset::open(root)?),
        })
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        match self {
            Self::Meds(data) => data.root(),
            Self::Cohort(cohort) => cohort.root(),
        }
    }

    /// Returns the number of shards.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::MedsFolder;
    /// assert_eq!(MedsFolder::open("../tests/data/synthea-meds")?.num_shards(), 4);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_shards(&self) -> usize {
        match self {
            Self::Meds(data) => data.shards().len(),
            Self::Cohort(cohort) => cohort.shards().len(),
        }
    }

    /// Reads shard `index`, one row per subject.
    ///
    /// `options` apply to MEDS data; a cohort has fixed columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let folder = MedsFolder::open("../tests/data/synthea-meds")?;
    /// assert_eq!(folder.read(1, &Default::default())?.name, "train/0");
    /// assert!(folder.read(4, &Default::default()).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] past the last shard; otherwise the errors of
    /// [`MedsShardFile::read`](crate::io::meds::MedsShardFile::read) and of
    /// [`TensorizedCohort::read_meds`].
    pub fn read(&self, index: usize, options: &MedsReadOptions) -> Result<MedsShard> {
        self.read_needed(index, options, NeededColumns::ALL)
    }

    /// Reads shard `index` like [`read`](Self::read), but only the needed columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::internal::meds::NeededColumns;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let folder = MedsFolder::open("../tests/data/synthea-meds")?;
    /// let shard = folder.read_needed(1, &Default::default(), NeededColumns(Some(&["code"])))?;
    /// assert!(shard.events.column("code").is_ok());
    /// assert!(shard.events.column("numeric_value").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`read`](Self::read).
    pub fn read_needed(
        &self,
        index: usize,
        options: &MedsReadOptions,
        needed: NeededColumns<'_>,
    ) -> Result<MedsShard> {
        match self {
            Self::Cohort(cohort) => cohort.read_needed(index, needed),
            Self::Meds(data) => match data.shards().nth(index) {
                Some(shard) => shard.read_needed(options, needed),
                None => Err(Error::OutOfRange {
                    axis: 0,
                    index: i64::try_from(index).unwrap_or(i64::MAX),
                    size: self.num_shards(),
                }),
            },
        }
    }

    /// Returns the schema that the batches of all shards have; see [`MedsShard::to_batch`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let folder = MedsFolder::open("../tests/data/synthea-meds")?;
    /// assert!(folder.root().join("data").is_dir());
    /// assert_eq!(folder.schema()?.field(0).name(), "subject_id");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the vocabulary cannot be read.
    pub fn schema(&self) -> Result<SchemaRef> {
        match self {
            Self::Meds(data) => data.schema(&MedsReadOptions::default()),
            Self::Cohort(cohort) => cohort.meds_schema(),
        }
    }

    /// Returns the vocabulary of the tokens.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds_torch::MedsFolder;
    /// let folder = MedsFolder::open("../tests/data/synthea-meds")?;
    /// assert_eq!(folder.vocabulary()?.len(), 400);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`MedsDataset::vocabulary`] and [`TensorizedCohort::vocabulary`].
    pub fn vocabulary(&self) -> Result<&Vocabulary> {
        match self {
            Self::Meds(data) => data.vocabulary(),
            Self::Cohort(cohort) => cohort.vocabulary(),
        }
    }
}
