use std::path::Path;

use super::Patients;
use crate::error::Result;
use crate::io::nrt::{NrtSchema, NrtWriter, WriteOptions};
use crate::table::RaggedTable;

impl Patients {
    pub(super) fn empty_table(&self) -> Result<RaggedTable> {
        self.source().draw_patients(0..0).into_table()
    }

    /// Writes the remaining patients as one `.nrt` file, with memory for a few chunks. `progress`
    /// is called with the number of patients written after each chunk.
    ///
    /// The format has no timestamps: `time` is omitted, `time_delta_days` stays. NULL becomes NaN.
    ///
    /// # Errors
    /// When the file exists and may not be replaced, or cannot be written.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::Patients;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("patients.nrt");
    /// Patients::new(42, 20)?.write_nrt(&path, &Default::default(), |_| ())?;
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
        let schema = NrtSchema::of_table(&self.empty_table()?.select(&COLUMNS)?);
        let mut writer = NrtWriter::create(path, &schema, options)?;
        for chunk in self {
            writer.write(&chunk?.select(&COLUMNS)?)?;
            progress(writer.num_rows());
        }
        writer.finish()
    }

    /// Writes the remaining patients as one Parquet file, with memory for a few chunks and one encoded row
    /// group. `progress` is called with the number of patients written after each chunk.
    ///
    /// # Errors
    /// When the file exists and may not be replaced, or cannot be written.
    #[cfg(feature = "parquet")]
    pub fn write_parquet(
        self,
        path: impl AsRef<Path>,
        options: &crate::io::parquet::ParquetWriteOptions,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let schema = self.empty_table()?.arrow_schema()?;
        let mut writer = crate::io::parquet::ParquetTableWriter::create(path, &schema, options)?;
        for chunk in self {
            writer.write(&chunk?)?;
            progress(writer.num_rows());
        }
        writer.finish()
    }
}
