//! The place of facts in batches. Facts are values about a row that are not part of its events.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPlace {
    /// In separate tensors.
    Beside,
    /// Before the elements of axis 1, at most this many facts.
    Elements(usize),
    /// In one element of axis 1 before the others, whose list on axis 2 consists of the facts.
    List,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    pub(super) elements: usize,
    /// Number of facts on axis 2, if all facts are one list there.
    pub(super) list: Option<usize>,
}
