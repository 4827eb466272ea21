use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::file::MedsFile;
use crate::array::nested_types::is_string_like;
use crate::array::{RaggedArray, leaf_type, list_depth};
use crate::error::{Error, Result};

/// Column of `codes.parquet` that lists the parents of a code.
pub const PARENT_CODES: &str = "parent_codes";

/// Parents and children of codes, from `parent_codes` of a MEDS `codes.parquet`.
///
/// A parent need not be a code of the file; it may be a name in an ontology (`ICD10CM/E11`).
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::CodeHierarchy;
/// let codes = CodeHierarchy::new([
///     ("DX//E11.9", ["ICD10CM/E11.9"]),
///     ("ICD10CM/E11.9", ["ICD10CM/E11"]),
/// ]);
/// let all: Vec<&str> = codes.descendants(&["ICD10CM/E11"]).into_iter().collect();
/// assert_eq!(all, ["DX//E11.9", "ICD10CM/E11", "ICD10CM/E11.9"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CodeHierarchy {
    children: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl CodeHierarchy {
    /// Creates a hierarchy from codes and the parents of each; a code may occur several times.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::CodeHierarchy;
    /// let codes = CodeHierarchy::new([("b", vec!["a"]), ("c", vec!["a", "x"]), ("d", vec![])]);
    /// assert_eq!(codes.descendants(&["x"]).into_iter().collect::<Vec<_>>(), ["c", "x"]);
    /// ```
    pub fn new<C, P, S>(entries: impl IntoIterator<Item = (C, P)>) -> Self
    where
        C: AsRef<str>,
        P: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let mut hierarchy = Self::default();
        for (code, parents) in entries {
            let code: Arc<str> = code.as_ref().into();
            for parent in parents {
                let children = hierarchy.children.entry(parent.as_ref().into()).or_default();
                children.push(Arc::clone(&code));
            }
        }
        hierarchy
    }

    /// Reads `code` and `parent_codes` (a list of strings, one string, or NULL for no parent) of a
    /// `codes.parquet`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::CodeHierarchy;
    /// let codes = CodeHierarchy::read("../tests/data/tiny-codes/codes.parquet")?;
    /// assert!(codes.descendants(&["ICD10CM/E11"]).contains("DX//E11.9"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or one of the two columns is missing or does not hold strings.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let source = MedsFile::open(path)?;
        source.check_code_column()?;
        let Ok(parents) = source.schema().field_with_name(PARENT_CODES) else {
            return Err(Error::file(
                source.path(),
                format!(
                    "there is no column {PARENT_CODES:?}, which lists the parents of each code; add it to find descendants"
                ),
            ));
        };
        let found = parents.data_type().clone();
        let depth = list_depth(&found);
        let leaf = leaf_type(&found);
        if depth > 1 || !(is_string_like(leaf) || leaf.is_null()) {
            return Err(source.make_type_error(
                PARENT_CODES,
                "strings or lists of strings (cast the column in the file)",
                &found,
            ));
        }
        let batch = source.read(&["code", PARENT_CODES], None)?;
        let named = |name| source.require_column(&batch, name);
        let codes = cast(named("code")?, &DataType::LargeUtf8)?;
        let codes = codes.as_string::<i64>();
        let parents = RaggedArray::try_from_arrow(named(PARENT_CODES)?)?;
        let texts = cast(parents.leaves(), &DataType::LargeUtf8)?;
        let texts = texts.as_string::<i64>();
        let rows = (0..codes.len()).filter(|row| codes.is_valid(*row)).map(|row| {
            let range = match parents.axes().first() {
                Some(axis) => axis.layout().range(row),
                None => row..row + 1,
            };
            let named = range.filter(|i| texts.is_valid(*i)).map(|i| texts.value(i));
            (codes.value(row), named)
        });
        Ok(Self::new(rows))
    }

    /// Returns `roots` and all descendants, in byte order.
    ///
    /// Unknown codes and cycles are allowed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::CodeHierarchy;
    /// let codes = CodeHierarchy::new([("b", ["a"]), ("c", ["b"])]);
    /// assert_eq!(codes.descendants(&["a"]).into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    /// ```
    pub fn descendants<'a, S: AsRef<str>>(&'a self, roots: &'a [S]) -> BTreeSet<&'a str> {
        let mut pending: Vec<&str> = roots.iter().map(AsRef::as_ref).collect();
        let mut all = BTreeSet::new();
        while let Some(code) = pending.pop() {
            if all.insert(code) {
                pending.extend(self.children.get(code).into_iter().flatten().map(|c| &**c));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(hierarchy: &CodeHierarchy, roots: &[&str]) -> Vec<String> {
        hierarchy.descendants(roots).into_iter().map(str::to_string).collect()
    }

    #[test]
    fn descendants_are_transitive_and_circles_end() {
        let h = CodeHierarchy::new([
            ("b", vec!["a"]),
            ("c", vec!["b", "x"]),
            ("d", vec!["c"]),
            ("a", vec!["d"]),
            ("self", vec!["self"]),
            ("e", vec![]),
        ]);
        assert_eq!(below(&h, &["a"]), ["a", "b", "c", "d"]);
        assert_eq!(below(&h, &["x"]), ["a", "b", "c", "d", "x"]);
        assert_eq!(below(&h, &["self"]), ["self"]);
        assert_eq!(below(&h, &["e"]), ["e"]);
        assert_eq!(below(&h, &["unknown", "e", "e"]), ["e", "unknown"]);
        assert!(below(&h, &[]).is_empty());
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let names: Vec<String> = (0..200_000).map(|i| i.to_string()).collect();
        let h = CodeHierarchy::new(names.windows(2).map(|w| (&w[1], [&w[0]])));
        assert_eq!(h.descendants(&["0"]).len(), names.len());
    }
}
