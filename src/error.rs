//! The one error type of the crate.

use std::path::{Path, PathBuf};

use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, with what was found, what was expected and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two columns of one table have lists of different length at the same place.
    #[error(
        "columns {left:?} and {right:?} disagree on axis {axis}: list {list} has {left_len} element(s) in {left:?} and {right_len} in {right:?}; columns of one ragged table must share their lengths on every axis they both have"
    )]
    Disagree {
        /// The column that set the lengths.
        left: String,
        /// The column that differs.
        right: String,
        /// The axis on which they differ (1 is the first list level).
        axis: usize,
        /// Position of the first differing list on the parent axis.
        list: usize,
        /// Length in `left`.
        left_len: usize,
        /// Length in `right`.
        right_len: usize,
    },
    /// A column has a number of values that does not fit its axis.
    #[error("column {column:?} has {found} value(s) but axis {axis} has {expected}")]
    ColumnLength {
        /// Column name.
        column: String,
        /// Axis the column lives on.
        axis: usize,
        /// Values the axis has.
        expected: usize,
        /// Values the column has.
        found: usize,
    },
    /// Nested input whose depth is not the same everywhere.
    #[error("the depth varies at {path}: expected {expected}, found {found}")]
    DepthVaries {
        /// Where, as `code[3][1]`.
        path: String,
        /// What the rest of the column has there.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A value of another type than its column.
    #[error("{path}: expected {expected}, found {found}")]
    ValueType {
        /// Where, as `code[3][1]`.
        path: String,
        /// Declared or inferred type.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Offsets, bounds or lengths that describe no lists.
    #[error("{what}: {message} (position {position})")]
    Offsets {
        /// Which offsets, such as `dim1/bounds`.
        what: String,
        /// Index of the first wrong number.
        position: usize,
        /// What is wrong with it.
        message: String,
    },
    /// An index outside its axis.
    #[error("index {index} is out of range for axis {axis} of size {size}")]
    OutOfRange {
        /// Axis indexed.
        axis: usize,
        /// The index as given.
        index: i64,
        /// Size of the axis there.
        size: usize,
    },
    /// An index outside its axis, in one of the rows.
    #[error("index {index} is out of range for axis {axis} of size {size} in row {row}")]
    OutOfRangeIn {
        /// The first row where that is so.
        row: usize,
        /// Axis indexed.
        axis: usize,
        /// The index as given.
        index: i64,
        /// Size of the list there.
        size: usize,
    },
    /// An index of a list of indices outside the list it goes into.
    #[error(
        "{what}: index {index} at position {position} of list {list} (row {row}) is out of range for {size} element(s)"
    )]
    OutOfRangeAt {
        /// The operation.
        what: &'static str,
        /// The first row where that is so (the sample of a batch).
        row: usize,
        /// Number of the list of indices among all lists of its axis: the row again on axis 1.
        list: usize,
        /// Place of the index in its list.
        position: usize,
        /// The index as given.
        index: i64,
        /// Size of the list there.
        size: usize,
    },
    /// An index that a sample of a batch asks for and the sample indexed does not have.
    #[error(
        "sample {sample:?}, position {position}: index {index} is out of range for {size} entries"
    )]
    NoSuchEntry {
        /// Place of the first such sample along every batch axis.
        sample: Vec<usize>,
        /// Which of its indices.
        position: usize,
        /// The index as given.
        index: i64,
        /// Entries there are, filler included where that may be read.
        size: usize,
    },
    /// An axis number that the array does not have.
    #[error("{what} has {ndim} axes (axis 0 is the rows); there is no axis {axis}")]
    NoSuchAxis {
        /// What was asked.
        what: String,
        /// Axis as given.
        axis: i64,
        /// Number of axes, rows included.
        ndim: usize,
    },
    /// A column name that the table does not have.
    #[error("no column {name:?}; the columns are {available}")]
    NoSuchColumn {
        /// Name as given.
        name: String,
        /// Names there are.
        available: String,
    },
    /// A type an operation cannot work on.
    #[error("{what}: expected {expected}, found {found}")]
    Type {
        /// Column, argument or operation.
        what: String,
        /// Types accepted, and what to do to get there.
        expected: String,
        /// Type found.
        found: DataType,
    },
    /// An allocation that is refused before it is made.
    #[error("{what} needs {bytes} bytes, more than the limit of {limit} bytes; {hint}")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// Bytes it would take.
        bytes: u128,
        /// Bytes allowed.
        limit: u128,
        /// What to change.
        hint: String,
    },
    /// A file whose content is not what its format promises.
    #[error("{path}: {message}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, where, and what was expected.
        message: String,
    },
    /// An output that exists and may not be replaced.
    #[error("{path} exists and is not overwritten unless asked for: --overwrite on the command line, OPTIONS (overwrite true) in COPY, the option `overwrite` in Rust", path = .0.display())]
    Exists(PathBuf),
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An object store refused.
    #[cfg(feature = "object_store")]
    #[error("{path}: {source}", path = path.display())]
    Store {
        /// The object.
        path: PathBuf,
        /// The store's reason.
        source: object_store::Error,
    },
    /// An argument that makes no sense, with what would.
    #[error("{0}")]
    Invalid(String),
    /// An integer result that does not fit 64 bits.
    #[error("{0}: the result does not fit a 64-bit integer; cast the values to float64 first")]
    Overflow(String),
    /// An error of Arrow.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// An error of Parquet.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
    /// An error of DataFusion.
    #[cfg(feature = "sql")]
    #[error(transparent)]
    DataFusion(#[from] Box<datafusion::error::DataFusionError>),
}

impl Error {
    /// An [`Error::Invalid`] from anything printable.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// An [`Error::File`].
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().to_path_buf(), message: message.into() }
    }

    /// An [`Error::Io`]; made for `map_err(|e| Error::io(path, e))`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// An [`Error::Type`].
    pub fn type_of(what: impl Into<String>, expected: impl Into<String>, found: &DataType) -> Self {
        Self::Type { what: what.into(), expected: expected.into(), found: found.clone() }
    }
}

#[cfg(feature = "sql")]
impl From<datafusion::error::DataFusionError> for Error {
    fn from(e: datafusion::error::DataFusionError) -> Self {
        Self::DataFusion(Box::new(e))
    }
}

#[cfg(feature = "sql")]
impl From<Error> for datafusion::error::DataFusionError {
    fn from(e: Error) -> Self {
        match e {
            Error::DataFusion(inner) => *inner,
            Error::Arrow(inner) => Self::ArrowError(Box::new(inner), None),
            other => Self::External(Box::new(other)),
        }
    }
}
