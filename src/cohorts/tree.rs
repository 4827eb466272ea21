//! The tree of the ends of windows.
//!
//! The root is the trigger, and each other node is an end of a window. An edge leads from the time
//! of a node to the time of a child: over a length of time, or to an event. An end at the time of
//! another node has no node of its own.

use super::boundary::{BoundaryReference, BoundarySearch, WindowBoundary, WindowSide};

/// Bounds of the count of a predicate in a window; `column` is an index of
/// [`CohortCriteria::columns`](super::criteria::CohortCriteria::columns).
#[derive(Clone, Debug)]
pub(super) struct CountConstraint {
    pub(super) predicate: String,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
}

/// A window as written in the configuration.
#[derive(Clone, Debug)]
pub(super) struct CohortWindow {
    pub(super) name: String,
    pub(super) start: WindowBoundary,
    pub(super) end: WindowBoundary,
    pub(super) start_inclusive: bool,
    pub(super) end_inclusive: bool,
    pub(super) has: Vec<CountConstraint>,
}

impl CohortWindow {
    /// Returns the root of the window: the side from which the other side is defined. With
    /// `end: start + 24h`, the root is the start.
    pub(super) fn root_side(&self) -> WindowSide {
        match self.start.is_of(WindowSide::End) {
            true => WindowSide::End,
            false => WindowSide::Start,
        }
    }

    /// Returns the leaf of the window: the side that is defined from the other side (the root).
    pub(super) fn leaf_side(&self) -> WindowSide {
        match self.root_side() {
            WindowSide::Start => WindowSide::End,
            WindowSide::End => WindowSide::Start,
        }
    }

    pub(super) fn find_boundary_at(&self, side: WindowSide) -> &WindowBoundary {
        match side {
            WindowSide::Start => &self.start,
            WindowSide::End => &self.end,
        }
    }
}

/// An edge of the tree of window ends. It leads to the end `side` of `window`.
#[derive(Clone, Debug)]
pub(super) struct EdgeToEnd<'a> {
    /// Index of the edge at whose end this edge begins; `None` if this edge begins at the trigger.
    pub(super) parent: Option<usize>,
    pub(super) window: &'a CohortWindow,
    pub(super) side: WindowSide,
    pub(super) way: &'a BoundarySearch,
}

struct NodeDraft {
    parent: usize,
    children: Vec<usize>,
}

const TRIGGER: usize = 0;

/// Returns the index of the node at the side `side` of the window with the index `window`.
fn find_node(window: usize, side: WindowSide) -> usize {
    match side {
        WindowSide::Start => 1 + 2 * window,
        WindowSide::End => 2 + 2 * window,
    }
}

/// Returns the window and its side to which a node other than the trigger belongs.
fn locate_node(node: usize) -> (usize, WindowSide) {
    let side = if node % 2 == 1 { WindowSide::Start } else { WindowSide::End };
    ((node - 1) / 2, side)
}

/// Returns the node from which the root of `window` is defined: the trigger, or an end of another
/// window.
fn find_root_parent(window: &CohortWindow, windows: &[CohortWindow]) -> Result<usize, String> {
    match &window.find_boundary_at(window.root_side()).reference {
        BoundaryReference::Word(word) if word == "trigger" => Ok(TRIGGER),
        BoundaryReference::Window(name, side) => {
            match windows.iter().position(|other| other.name == *name) {
                Some(other) => Ok(find_node(other, *side)),
                None => {
                    let names: Vec<&str> = windows.iter().map(|w| w.name.as_str()).collect();
                    let names = names.join(", ");
                    Err(format!("there is no window {name:?}; the windows are {names}"))
                }
            }
        }
        other => Err(format!(
            "expected \"trigger\" or an end of another window, such as \"input.end\", found \"{other}\""
        )),
    }
}

/// Returns the edges of the tree of the ends of `windows`, depth first. If the references of a
/// window do not lead to the trigger, the error is the index of this window, and a message.
pub(super) fn build_tree(windows: &[CohortWindow]) -> Result<Vec<EdgeToEnd<'_>>, (usize, String)> {
    let mut drafts: Vec<NodeDraft> = (0..=2 * windows.len())
        .map(|_| NodeDraft { parent: TRIGGER, children: Vec::new() })
        .collect();
    for (w, window) in windows.iter().enumerate() {
        let (root, leaf) = (find_node(w, window.root_side()), find_node(w, window.leaf_side()));
        drafts[leaf].parent = root;
        drafts[root].children.push(leaf);
    }
    for (w, window) in windows.iter().enumerate() {
        let parent = find_root_parent(window, windows).map_err(|message| (w, message))?;
        let root = find_node(w, window.root_side());
        drafts[root].parent = parent;
        drafts[parent].children.push(root);
    }
    // Windows that refer to each other in a circle never lead to the trigger.
    for (w, window) in windows.iter().enumerate() {
        let mut at = find_node(w, window.root_side());
        for _ in 0..drafts.len() {
            at = drafts[at].parent;
        }
        if at != TRIGGER {
            let message = "windows refer to each other in a circle; define an end of one of them from the trigger";
            return Err((w, message.into()));
        }
    }
    let way = |node: usize| {
        let (window, side) = locate_node(node);
        windows[window].find_boundary_at(side).way.as_ref()
    };
    // Removes each node that is always at the time of its parent. Its children become children of
    // the parent, in the order that ACES gives them.
    for removed in 1..drafts.len() {
        if way(removed).is_some() {
            continue;
        }
        let parent = drafts[removed].parent;
        for child in std::mem::take(&mut drafts[removed].children) {
            drafts[child].parent = parent;
            drafts[parent].children.push(child);
        }
    }
    let mut edges = Vec::new();
    let mut open: Vec<(usize, Option<usize>)> =
        drafts[TRIGGER].children.iter().rev().map(|child| (*child, None)).collect();
    while let Some((at, parent)) = open.pop() {
        let Some(way) = way(at) else { continue };
        let (window, side) = locate_node(at);
        open.extend(drafts[at].children.iter().rev().map(|child| (*child, Some(edges.len()))));
        edges.push(EdgeToEnd { parent, window: &windows[window], side, way });
    }
    Ok(edges)
}
