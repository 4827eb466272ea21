use std::path::Path;

use super::SyntheticPatients;
use crate::error::Result;
use crate::io::nrt::{NrtSchema, NrtWriter, WriteOptions};
use crate::table::RaggedTable;

impl SyntheticPatients {
    fn make_empty_table(&self) -> Result<RaggedTable> {
        self.source().draw_patients(0..0).into_table()
    }

    /// Writes the patients that this iterator has not yielded yet as one `.nrt` file, with at most
    /// a few chunks in memory.
    ///
    /// Calls `progress` after each chunk with the number of patients written so far.
    ///
    /// The format has neither timestamps nor NULL: `time` is omitted, and missing values are NaN.
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or it cannot be written.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("patients.nrt");
    /// SyntheticPatients::new(42, 20)?.write_nrt(&path, &Default::default(), |_| ())?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_nrt(
        self,
        path: impl AsRef<Path>,
        options: &WriteOptions,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        const COLUMNS: [&str; 4] = ["subject_id", "time_delta_days", "code", "numeric_value"];
        let schema = NrtSchema::of_table(&self.make_empty_table()?.select(&COLUMNS)?);
        let mut writer = NrtWriter::create(path, &schema, options)?;
        for chunk in self {
            writer.write(&chunk?.select(&COLUMNS)?)?;
            progress(writer.num_rows());
        }
        writer.finish()
    }

    /// Writes the patients that this iterator has not yielded yet as one Parquet file, with at most
    /// a few chunks and one encoded row group in memory.
    ///
    /// Calls `progress` after each chunk with the number of patients written so far.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("patients.parquet");
    /// SyntheticPatients::new(42, 20)?.write_parquet(&path, &Default::default(), |_| ())?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or it cannot be written.
    #[cfg(feature = "parquet")]
    pub fn write_parquet(
        self,
        path: impl AsRef<Path>,
        options: &crate::io::parquet::ParquetWriteOptions,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let schema = self.make_empty_table()?.arrow_schema()?;
        let mut writer = crate::io::parquet::ParquetTableWriter::create(path, &schema, options)?;
        for chunk in self {
            writer.write(&chunk?)?;
            progress(writer.num_rows());
        }
        writer.finish()
    }
}
