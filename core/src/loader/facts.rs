//! The place of facts in batches. Facts are values about a row that are not part of its events.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPlace {
    /// In separate tensors.
    Beside,
    /// Before the elements of axis 1, at most this many facts.
    Elements(usize),
    /// In one additional element at the start of axis 1; the list of this element on axis 2 has the facts.
    List,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    pub(super) elements: usize,
    /// Number of facts, if one element of axis 1 has all facts as its list on axis 2; otherwise `None`.
    pub(super) list: Option<usize>,
}
