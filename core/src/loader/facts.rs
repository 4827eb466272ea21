//! Places of facts about a row that are not events.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPlace {
    /// In separate tensors.
    Beside,
    /// Before the elements of axis 1, at most this many.
    Elements(usize),
    /// One leading element of axis 1, with the facts as its list on axis 2.
    List,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    pub(super) elements: usize,
    /// Number of elements on axis 2, if the facts are one list there.
    pub(super) list: Option<usize>,
}
