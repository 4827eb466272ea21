//! The error type of the crate.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use arrow::datatypes::DataType;
use arrow::error::ArrowError;
#[cfg(feature = "sql")]
use datafusion_common::{DataFusionError, SchemaError};
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;

/// Result whose error type is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Advice about the memory limit, for error messages.
#[doc(hidden)]
pub const MORE_MEMORY: &str =
    "raise the limit with --memory-limit or SET serrate.memory_limit, or read less at a time";

/// Pairs of a local path and the URL or path that errors name instead: local copies of objects in
/// an object store, and temporary folders of writers.
static COPIES: RwLock<Vec<(PathBuf, String)>> = RwLock::new(Vec::new());

/// Records that `copy`, a file or folder, is a local copy of `url`, so that errors name the URL.
#[doc(hidden)]
pub fn add_copy(copy: &Path, url: &str) {
    let mut copies = COPIES.write().unwrap_or_else(PoisonError::into_inner);
    if copies.iter().all(|(known, _)| known != copy) {
        copies.push((copy.to_path_buf(), url.to_owned()));
    }
}

/// Ends the effect of [`add_copy`] for a file or folder that no longer exists.
#[doc(hidden)]
pub fn remove_copy(copy: &Path) {
    COPIES.write().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| known != copy);
}

/// Returns the URL of the original if `path` is a local copy ([`add_copy`]) or inside one. Returns
/// any other path unchanged.
#[doc(hidden)]
pub fn find_original(path: &Path) -> Cow<'_, Path> {
    let copies = COPIES.read().unwrap_or_else(PoisonError::into_inner);
    let original = copies.iter().find_map(|(copy, url)| {
        let below = path.strip_prefix(copy).ok()?;
        Some(match below.as_os_str().is_empty() {
            true => url.clone(),
            false => format!("{}/{}", url.trim_end_matches('/'), below.display()),
        })
    });
    original.map_or(Cow::Borrowed(path), |url| Cow::Owned(PathBuf::from(url)))
}

/// All errors of the crate, with messages that say what was found, where, and what was expected.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::Error;
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder().rows(2).build()?;
/// let error = table.column("age").unwrap_err();
/// assert!(matches!(error, Error::NoSuchColumn { name, .. } if name == "age"));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two columns of a table differ in the length of a list on an axis that they share.
    #[error(
        "columns {left:?} and {right:?} differ in list lengths on axis {axis}: list {list} has {left_len} element(s) in {left:?} and {right_len} in {right:?}; columns of one ragged table must have equal lists on every axis they share"
    )]
    Disagree {
        /// Name of the column that determined the lengths of the lists.
        left: String,
        /// Name of the column whose lists differ in length from those of `left`.
        right: String,
        /// The axis on which the lists of the two columns differ (1 is the outermost list level).
        axis: usize,
        /// Index of the first list that differs, among all lists of the axis.
        list: usize,
        /// Length of this list in the column `left`.
        left_len: usize,
        /// Length of this list in the column `right`.
        right_len: usize,
    },
    /// The number of values of a column differs from the number of elements of its axis.
    #[error(
        "column {column:?} has {found} value(s), but its axis {axis} has {expected} element(s); both numbers must be equal"
    )]
    ColumnLength {
        /// Name of the column with the wrong number of values.
        column: String,
        /// Axis of the table on which the column has its values.
        axis: usize,
        /// Number of elements of the axis; the column must have as many values.
        expected: usize,
        /// Number of values that the column has.
        found: usize,
    },
    /// Nested input in which values have different numbers of list levels.
    #[error(
        "the nesting depth varies at {path}: expected {expected}, found {found}; nest all values of a column in the same number of lists"
    )]
    DepthVaries {
        /// Path of the value, such as `code[3][1]`.
        path: String,
        /// Nesting depth of the other values of the column.
        expected: String,
        /// Nesting depth of the value at this path, or a description of the value.
        found: String,
    },
    /// A value whose type differs from the type of its column.
    #[error("{path}: expected {expected}, found {found}")]
    ValueType {
        /// Path of the value, such as `code[3][1]`.
        path: String,
        /// Declared or inferred type of the column.
        expected: String,
        /// The value that was found at this path, or its type.
        found: String,
    },
    /// Offsets, bounds or lengths that do not describe valid lists.
    #[error("{what}: {message} (position {position})")]
    Offsets {
        /// Name of the offsets, such as `dim1/bounds`.
        what: String,
        /// Position of the first invalid number in the offsets.
        position: usize,
        /// Description of the fault at this position.
        message: String,
    },
    /// An index that is out of range for its axis in every row.
    #[error("index {index} is out of range for axis {axis} of size {size}")]
    OutOfRange {
        /// The axis on which the index selects.
        axis: usize,
        /// The index that is out of range.
        index: i64,
        /// Number of elements of the axis.
        size: usize,
    },
    /// An index that is out of range for its axis in at least one row, because lists differ in
    /// length.
    #[error("index {index} is out of range for axis {axis} of size {size} in row {row}")]
    OutOfRangeIn {
        /// The first row for which the index is out of range.
        row: usize,
        /// The axis on which the index selects.
        axis: usize,
        /// The index that is out of range.
        index: i64,
        /// Size of the axis in this row.
        size: usize,
    },
    /// An index in a list of indices is out of range for the list from which it selects.
    #[error(
        "{what}: index {index} at position {position} of list {list} (row {row}) is out of range for {size} element(s)"
    )]
    OutOfRangeAt {
        /// Name of the operation that received the indices.
        what: &'static str,
        /// The first row (or sample of a batch) with an index out of range.
        row: usize,
        /// Number of the list of indices, counted from 0 over all rows (on axis 1, equal to `row`).
        list: usize,
        /// Position of the index in its list of indices.
        position: usize,
        /// The index that is out of range.
        index: i64,
        /// Size of the list that the index selects from.
        size: usize,
    },
    /// An index selects an entry that a sample of a batch does not have.
    #[error(
        "sample {sample:?}, position {position}: index {index} is out of range; the number of entries is {size}"
    )]
    NoSuchEntry {
        /// The first sample with an index out of range: its position on each batch axis.
        sample: Vec<usize>,
        /// Position of the index among the indices of the sample.
        position: usize,
        /// The index that is out of range.
        index: i64,
        /// Number of entries of the sample, including padding entries if the index may select them.
        size: usize,
    },
    /// An axis that the array does not have.
    #[error("{what} has no axis {axis}; its number of axes is {ndim} (axis 0 is the rows)")]
    NoSuchAxis {
        /// Name of the array, table or tensor that does not have this axis.
        what: String,
        /// The requested axis, which does not exist.
        axis: i64,
        /// Number of axes that exist, including the rows.
        ndim: usize,
    },
    /// The name of a column that a table does not have.
    #[error("no column {name:?}; the columns are {available}")]
    NoSuchColumn {
        /// The requested column name.
        name: String,
        /// The names of the columns that the table has.
        available: String,
    },
    /// A type that an operation does not support.
    #[error("{what}: expected {expected}, found {found}")]
    Type {
        /// Name of the column, argument or operation that has the type.
        what: String,
        /// The accepted types, and how to convert to one of them.
        expected: String,
        /// The type that was found, which is not accepted.
        found: DataType,
    },
    /// An allocation that would exceed a size limit; nothing was allocated.
    #[error("{what} needs {bytes} bytes, more than the limit of {limit} bytes; {hint}")]
    TooLarge {
        /// Name of the object to allocate.
        what: String,
        /// Size of the object in bytes.
        bytes: u128,
        /// Maximum size in bytes.
        limit: u128,
        /// Advice on how to stay below the limit.
        hint: String,
    },
    /// A request for memory that would exceed the memory limit of the process.
    #[error("{what} needs {bytes} more bytes, but {used} of the memory limit of {limit} bytes are in use; {more}", more = MORE_MEMORY)]
    MemoryLimit {
        /// Name of the operator or object that needs the memory.
        what: String,
        /// Number of additional bytes that the operator or object needs.
        bytes: usize,
        /// Number of bytes of the limit that are already in use.
        used: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A file whose content violates its format.
    #[error("{path}: {message}", path = path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Position of the fault in the file, value found there, and expected value.
        message: String,
    },
    /// An output that exists already and was not overwritten.
    #[error("{path} already exists; to replace it, use --overwrite on the command line, OPTIONS (overwrite true) in COPY, or the option `overwrite` in Rust and Python", path = .0.display())]
    Exists(PathBuf),
    /// The operating system reported an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// The error that the operating system reported.
        source: std::io::Error,
    },
    /// An object store reported an error.
    #[cfg(feature = "object_store")]
    #[error("{path}: {source}", path = path.display())]
    Store {
        /// Path of the object.
        path: PathBuf,
        /// The error that the object store reported.
        source: object_store::Error,
    },
    /// An invalid argument. The message says what is valid.
    #[error("{0}")]
    Invalid(String),
    /// An integer result that does not fit in 64 bits.
    #[error("{0}: the result does not fit a 64-bit integer; cast the values to float64 first")]
    Overflow(String),
    /// An error returned by Arrow.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// An error returned by Parquet.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// An error returned by DataFusion.
    #[cfg(feature = "sql")]
    #[error(transparent)]
    DataFusion(#[from] Box<DataFusionError>),
}

impl Error {
    /// Returns an [`Error::Invalid`] with this message.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::Error;
    /// assert_eq!(Error::invalid("no rows").to_string(), "no rows");
    /// ```
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Returns an [`Error::File`] for the file at `path`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::Error;
    /// let damaged = Error::file("a.nrt", "the header ends early");
    /// assert_eq!(damaged.to_string(), "a.nrt: the header ends early");
    /// ```
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::File { path: find_original(path.as_ref()).into_owned(), message: message.into() }
    }

    /// Returns an [`Error::Io`] for the file at `path`, for use in
    /// `map_err(|e| Error::io(path, e))`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::io::ErrorKind;
    /// use serrate::Error;
    /// let missing = Error::io("a.json", ErrorKind::NotFound.into());
    /// assert!(missing.to_string().starts_with("a.json: "));
    /// assert!(missing.is_not_found());
    /// ```
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: find_original(path.as_ref()).into_owned(), source }
    }

    /// Returns an [`Error::Type`] for `what`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::Error;
    /// let error = Error::type_of("column age", "a number", &DataType::Utf8);
    /// assert_eq!(error.to_string(), "column age: expected a number, found Utf8");
    /// ```
    pub fn type_of(what: impl Into<String>, expected: impl Into<String>, found: &DataType) -> Self {
        Self::Type { what: what.into(), expected: expected.into(), found: found.clone() }
    }

    /// Returns whether the cause is a file, a folder or an object that does not exist.
    ///
    /// All predicates `is_..` of this type also look into errors of Arrow, Parquet and DataFusion
    /// that wrap another error, so they also work for files that SQL reads.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::json::read_json;
    /// let error = read_json("no such file.json", &Default::default()).unwrap_err();
    /// assert!(error.is_not_found() && !error.is_exists());
    /// ```
    pub fn is_not_found(&self) -> bool {
        self.is_io_kind(ErrorKind::NotFound)
    }

    /// Returns whether the cause is an output that exists already and was not overwritten.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::io::ErrorKind;
    /// use serrate::Error;
    /// assert!(Error::Exists("a.nrt".into()).is_exists());
    /// assert!(!Error::io("a.nrt", ErrorKind::NotFound.into()).is_exists());
    /// ```
    pub fn is_exists(&self) -> bool {
        self.is_io_kind(ErrorKind::AlreadyExists)
            || self.has_cause(|e| matches!(e.downcast_ref(), Some(Self::Exists(_))))
    }

    /// Returns whether the cause is a lack of memory: the system has none left, or a limit is
    /// exceeded.
    ///
    /// The same call may succeed with a higher limit or on less data.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::dense::DenseOptions;
    /// use serrate::table::RaggedTable;
    /// let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// let options = DenseOptions { limit: Some(4), ..Default::default() };
    /// assert!(table.to_dense(&options).unwrap_err().is_memory_limit());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_memory_limit(&self) -> bool {
        self.is_io_kind(ErrorKind::OutOfMemory)
            || self.has_cause(|e| {
                #[cfg(feature = "sql")]
                if let Some(DataFusionError::ResourcesExhausted(_)) = e.downcast_ref() {
                    return true;
                }
                matches!(e.downcast_ref(), Some(Self::TooLarge { .. } | Self::MemoryLimit { .. }))
                    || matches!(e.downcast_ref(), Some(ArrowError::MemoryError(_)))
            })
    }

    /// Returns whether the cause is an index outside the axis, list or sample that it selects from.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// let t = DenseTensor::from_vec([2], vec![1, 2])?;
    /// assert!(t.index(&[2.into()]).unwrap_err().is_out_of_range());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_out_of_range(&self) -> bool {
        self.has_cause(|e| {
            matches!(
                e.downcast_ref(),
                Some(
                    Self::OutOfRange { .. }
                        | Self::OutOfRangeIn { .. }
                        | Self::OutOfRangeAt { .. }
                        | Self::NoSuchEntry { .. }
                )
            )
        })
    }

    /// Returns whether the cause is a file of invalid format.
    ///
    /// The same call fails again until the file is replaced.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::io::ErrorKind;
    /// use serrate::Error;
    /// assert!(Error::file("a.nrt", "the header ends early").is_bad_file());
    /// assert!(!Error::io("a.nrt", ErrorKind::NotFound.into()).is_bad_file());
    /// ```
    pub fn is_bad_file(&self) -> bool {
        self.has_cause(|e| {
            #[cfg(feature = "parquet")]
            if let Some(ParquetError::General(_) | ParquetError::EOF(_)) = e.downcast_ref() {
                return true;
            }
            matches!(e.downcast_ref(), Some(Self::File { .. }))
        })
    }

    /// Returns whether the cause is the name of a column that does not exist.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder().rows(2).build()?;
    /// assert!(table.column("age").unwrap_err().is_no_such_column());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_no_such_column(&self) -> bool {
        self.has_cause(|e| {
            #[cfg(feature = "sql")]
            if let Some(SchemaError::FieldNotFound { .. }) = e.downcast_ref() {
                return true;
            }
            matches!(e.downcast_ref(), Some(Self::NoSuchColumn { .. }))
        })
    }

    /// Returns whether the cause is a value, column or argument of an unsupported type.
    ///
    /// The same call may succeed after a conversion to a supported type.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::Error;
    /// assert!(Error::type_of("column age", "a number", &DataType::Utf8).is_wrong_type());
    /// ```
    pub fn is_wrong_type(&self) -> bool {
        self.has_cause(|e| {
            matches!(e.downcast_ref(), Some(Self::Type { .. } | Self::ValueType { .. }))
        })
    }

    /// Returns whether the cause is an integer result that does not fit its type.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::Error;
    /// assert!(Error::Overflow("ragged_sum".into()).is_overflow());
    /// ```
    pub fn is_overflow(&self) -> bool {
        self.has_cause(|e| {
            matches!(e.downcast_ref(), Some(Self::Overflow(_)))
                || matches!(e.downcast_ref(), Some(ArrowError::ArithmeticOverflow(_)))
        })
    }

    fn is_io_kind(&self, kind: ErrorKind) -> bool {
        self.has_cause(|e| {
            #[cfg(feature = "object_store")]
            match e.downcast_ref() {
                Some(object_store::Error::NotFound { .. }) => return kind == ErrorKind::NotFound,
                Some(object_store::Error::AlreadyExists { .. }) => {
                    return kind == ErrorKind::AlreadyExists;
                }
                _ => {}
            }
            e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == kind)
        })
    }

    /// Returns whether `test` holds for this error or for an error that it wraps, at any depth.
    fn has_cause(&self, test: impl Fn(&(dyn StdError + 'static)) -> bool) -> bool {
        let mut next: Option<&(dyn StdError + 'static)> = Some(self);
        while let Some(error) = next {
            if test(error) {
                return true;
            }
            // `source()` of a variant with `#[error(transparent)]` skips the wrapped error, so
            // continue with the wrapped error.
            next = match error.downcast_ref() {
                Some(Self::Arrow(e)) => Some(e),
                #[cfg(feature = "parquet")]
                Some(Self::Parquet(e)) => Some(e),
                #[cfg(feature = "sql")]
                Some(Self::DataFusion(e)) => Some(e.as_ref()),
                _ => error.source(),
            };
        }
        false
    }
}

#[cfg(feature = "sql")]
impl From<DataFusionError> for Error {
    fn from(e: DataFusionError) -> Self {
        Self::DataFusion(Box::new(e))
    }
}

#[cfg(feature = "sql")]
impl From<Error> for DataFusionError {
    fn from(e: Error) -> Self {
        match e {
            Error::DataFusion(inner) => *inner,
            Error::Arrow(inner) => Self::ArrowError(Box::new(inner), None),
            other => Self::External(Box::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_urls_of_copies() {
        add_copy(Path::new("/tmp/.serrate-copies/7"), "s3://bucket/meds/");
        add_copy(Path::new("/tmp/.serrate-copies/8/a.yaml"), "s3://bucket/a.yaml");
        for (path, named) in [
            ("/tmp/.serrate-copies/7/data/0.parquet", "s3://bucket/meds/data/0.parquet: cut"),
            ("/tmp/.serrate-copies/7", "s3://bucket/meds/: cut"),
            ("/tmp/.serrate-copies/8/a.yaml", "s3://bucket/a.yaml: cut"),
            ("/tmp/.serrate-copies/77", "/tmp/.serrate-copies/77: cut"),
        ] {
            assert_eq!(Error::file(path, "cut").to_string(), named);
            let io = Error::io(path, std::io::Error::other("cut"));
            assert_eq!(io.to_string(), named);
        }
    }

    #[test]
    fn predicates_tell_errors_apart() {
        let large = Error::TooLarge { what: "x".into(), bytes: 2, limit: 1, hint: String::new() };
        let errors = [
            Error::io("a", ErrorKind::NotFound.into()),
            Error::Exists("a".into()),
            large,
            Error::OutOfRange { axis: 0, index: 3, size: 2 },
            Error::file("a", "ends early"),
            Error::NoSuchColumn { name: "a".into(), available: "b".into() },
            Error::type_of("a", "a number", &DataType::Utf8),
            Error::Overflow("a".into()),
            Error::invalid("no"),
        ];
        for (i, error) in errors.iter().enumerate() {
            assert_eq!(list_answers(error), (0..8).map(|k| k == i).collect::<Vec<_>>(), "{error}");
        }
        assert!(Error::io("a", ErrorKind::AlreadyExists.into()).is_exists());
        assert!(Error::Arrow(ArrowError::MemoryError("full".into())).is_memory_limit());
    }

    fn list_answers(e: &Error) -> Vec<bool> {
        vec![
            e.is_not_found(),
            e.is_exists(),
            e.is_memory_limit(),
            e.is_out_of_range(),
            e.is_bad_file(),
            e.is_no_such_column(),
            e.is_wrong_type(),
            e.is_overflow(),
        ]
    }

    #[test]
    fn predicates_look_into_wrapped_errors() {
        let wrapped = ArrowError::ExternalError(Box::new(Error::Exists("a".into())));
        assert!(Error::Arrow(wrapped).is_exists());
        #[cfg(feature = "sql")]
        {
            let inner = DataFusionError::from(Error::io("a", ErrorKind::NotFound.into()));
            let error = Error::from(inner.context("while reading"));
            assert!(error.is_not_found() && !error.is_exists());
            let full = DataFusionError::ResourcesExhausted("pool".into());
            assert!(Error::from(full).is_memory_limit());
            let column = Box::new(datafusion_common::Column::from_name("a"));
            let unknown = SchemaError::FieldNotFound { field: column, valid_fields: Vec::new() };
            let unknown = DataFusionError::SchemaError(Box::new(unknown), Box::new(None));
            assert!(Error::from(unknown.context("while planning")).is_no_such_column());
        }
    }
}
