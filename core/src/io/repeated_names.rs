use std::collections::HashSet;
use std::hash::Hash;

use arrow::datatypes::Fields;

/// Returns the first of `items` that is equal to an earlier one; `None` if all are distinct.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::internal::find_repeated;
/// assert_eq!(find_repeated(["a", "b", "b", "a"]), Some("b"));
/// assert_eq!(find_repeated(["a", "b"]), None);
/// ```
pub fn find_repeated<T: Copy + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut items = items.into_iter();
    let mut seen = HashSet::with_capacity(items.size_hint().0);
    items.find(|item| !seen.insert(*item))
}

/// Returns the first name in `fields` that an earlier field also has.
///
/// ```
/// # use serrate_core as serrate;
/// use arrow::datatypes::{DataType, Field, Fields};
/// use serrate::internal::find_repeated_name;
/// let fields = ["a", "b", "a"].map(|name| Field::new(name, DataType::Int8, true));
/// let fields = Fields::from_iter(fields);
/// assert_eq!(find_repeated_name(&fields), Some("a"));
/// ```
pub fn find_repeated_name(fields: &Fields) -> Option<&str> {
    find_repeated(fields.iter().map(|field| field.name().as_str()))
}
