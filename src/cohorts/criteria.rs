//! [`CohortCriteria`]: a configuration of a cohort, read from YAML and checked.

mod config_file;
mod definitions;
mod ends;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use self::config_file::ConfigFile;
use self::definitions::{PredicateDraft, parse_expression, read_derived, read_plain};
use self::ends::{check_order, describe_boundary};
use super::boundary::{
    ANY_EVENT, BoundarySearch, RECORD_END, RECORD_START, WindowBoundary, WindowSide, is_name,
};
use super::matches::PlainPredicate;
use super::tree::{CohortWindow, CountConstraint, EdgeToEnd, build_tree};
use super::yaml::{YamlEntry, YamlNode, YamlValue};
use crate::error::Result;

/// Content of a column of counts, which has one number for each time of a subject.
#[derive(Clone, Debug)]
pub(super) enum CountSource {
    /// Number of measurements that match the plain predicate with this index.
    Plain(usize),
    /// 1 at each time at which the columns `inputs` are positive, else 0. If `all` is true, all of
    /// these columns must be positive; otherwise, one is enough.
    Derived {
        all: bool,
        inputs: Vec<usize>,
    },
    /// 1 at each time with an event.
    AnyEvent,
    RecordStart,
    RecordEnd,
}

/// A column of counts, with the name of its predicate: one count for each time of a subject.
#[derive(Clone, Debug)]
pub(super) struct CountColumn {
    pub(super) name: String,
    pub(super) counted: CountSource,
    /// Whether the predicate selects subjects by their measurements without a time.
    pub(super) is_static: bool,
    pub(super) definition: String,
}

/// How the end of a [`WindowEdge`] is found from its start: at a fixed distance, or at an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum EdgeEnd {
    /// The edge ends this number of microseconds later (or earlier, if negative) than it begins.
    Offset(i64),
    /// The edge ends at the next (`backward`: previous) event with a positive count in `column`.
    Event { column: usize, backward: bool },
    /// The edge ends at the first event of the subject, if that is not after the start of the edge.
    FirstEvent,
    /// The edge ends at the last event of the subject, if that is not before the start of the edge.
    LastEvent,
}

impl EdgeEnd {
    pub(super) fn is_backward(self) -> bool {
        match self {
            Self::Offset(micros) => micros < 0,
            Self::Event { backward, .. } => backward,
            Self::FirstEvent => true,
            Self::LastEvent => false,
        }
    }
}

/// An edge of the tree of window ends: a range of time from one window end (or the trigger) to
/// another. A trigger is kept only if the range exists and satisfies the constraints.
#[derive(Clone, Debug)]
pub(super) struct WindowEdge {
    /// Name of the node to which the edge leads, such as `input.end`.
    pub(super) name: String,
    /// Index of the edge at whose end this edge begins; `None` if this edge begins at the trigger.
    pub(super) parent: Option<usize>,
    pub(super) target: EdgeEnd,
    /// Whether the range of time includes its earlier end, and whether it includes its later end.
    pub(super) closed: (bool, bool),
    pub(super) constraints: Vec<CountConstraint>,
    /// How the configuration defines the node to which the edge leads, such as `trigger + 24h`.
    pub(super) definition: String,
}

/// The count of a predicate in the range of time of an edge: the index of the edge in `edges` of
/// [`CohortCriteria`], and the index of the predicate in `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeCount {
    pub(super) edge: usize,
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct CohortCriteria {
    path: PathBuf,
    pub(super) plain: Vec<PlainPredicate>,
    /// Columns of counts in the order of computation: plain, derived and built-in predicates.
    pub(super) columns: Vec<CountColumn>,
    /// Indices in `columns` of static predicates, which select subjects by measurements without a
    /// time.
    pub(super) statics: Vec<usize>,
    pub(super) trigger: usize,
    pub(super) edges: Vec<WindowEdge>,
    /// The prediction time: the start or end (`WindowSide`) of the edge with this index in `edges`.
    pub(super) index_timestamp: Option<(usize, WindowSide)>,
    pub(super) label: Option<EdgeCount>,
    /// Messages about parts of the configuration that are valid but may not mean what the user
    /// expects.
    pub(crate) notes: Vec<String>,
}

impl CohortCriteria {
    /// Reads a configuration and, if given, a second file with predicates. A predicate of the
    /// second file replaces the predicate of the same name in the configuration, or is added.
    /// Errors name file, line and key.
    pub(crate) fn read_config(path: &Path, predicates: Option<&Path>) -> Result<Self> {
        let main = ConfigFile::read_yaml(path)?;
        let other = predicates.map(ConfigFile::read_yaml).transpose()?;
        ConfigReader::new(&main, other.as_ref())?.build()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has_index_timestamp(&self) -> bool {
        self.index_timestamp.is_some()
    }

    pub(crate) fn has_label(&self) -> bool {
        self.label.is_some()
    }

    /// Returns the columns of counts that results have, with their indices in `columns`. Results
    /// have no counts of static predicates.
    pub(super) fn list_counted_columns(&self) -> impl Iterator<Item = (usize, &CountColumn)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.is_static)
    }

    /// Returns the names of the columns of the data, other than `code` and `numeric_value`, for
    /// which a predicate requires a value.
    pub(super) fn list_other_columns(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.plain.iter().flat_map(|p| &p.other_columns) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// The definition of a predicate, before it is parsed.
struct PredicateDefinition<'a> {
    source: &'a ConfigFile,
    /// Key of the definition, such as `predicates.death`.
    key: String,
    entry: &'a YamlEntry,
    /// Whether the definition is under the key `patient_demographics` instead of `predicates`.
    of_patients: bool,
}

struct ConfigReader<'a> {
    main: &'a ConfigFile,
    definitions: Vec<PredicateDefinition<'a>>,
    trigger: &'a YamlNode,
    windows: &'a [YamlEntry],
}

/// A window of the configuration with its line and its keys `label` and `index_timestamp`.
struct WindowEntry<'a> {
    window: CohortWindow,
    line: usize,
    label: Option<(&'a str, usize)>,
    index_timestamp: Option<(WindowSide, usize)>,
}

/// Values of the keys of a window; `None` for keys that are missing or null.
#[derive(Default)]
struct WindowKeys<'a> {
    start: Option<WindowBoundary>,
    end: Option<WindowBoundary>,
    start_inclusive: Option<bool>,
    end_inclusive: Option<bool>,
    has: &'a [YamlEntry],
    label: Option<(&'a str, usize)>,
    index_timestamp: Option<(WindowSide, usize)>,
}

/// The edges of the windows that have the keys `index_timestamp` and `label`.
#[derive(Default)]
struct MarkedEdges {
    index_timestamp: Option<(usize, WindowSide)>,
    label: Option<EdgeCount>,
}

/// Finds the columns of the predicates that the configuration `source` counts.
struct ColumnFinder<'a> {
    source: &'a ConfigFile,
    columns: &'a [CountColumn],
    by_name: HashMap<&'a str, usize>,
}

impl<'a> ColumnFinder<'a> {
    fn new(source: &'a ConfigFile, columns: &'a [CountColumn]) -> Self {
        let by_name = columns.iter().enumerate().map(|(i, c)| (c.name.as_str(), i)).collect();
        Self { source, columns, by_name }
    }

    /// Returns the index of the column of the predicate `name`, which `key` at `line` refers to.
    fn find_column(&self, name: &str, line: usize, key: &str) -> Result<usize> {
        let message = match self.by_name.get(name) {
            Some(column) if self.columns[*column].is_static => format!(
                "the predicate {name} is static: it selects subjects, not events, so windows cannot count it; use a predicate of events"
            ),
            Some(column) => return Ok(*column),
            None => format!("there is no predicate {name:?}; define it under the key predicates"),
        };
        Err(self.source.make_fault(line, key, message))
    }
}

impl<'a> ConfigReader<'a> {
    fn new(main: &'a ConfigFile, other: Option<&'a ConfigFile>) -> Result<Self> {
        let (mut trigger, mut windows): (Option<&YamlNode>, &[YamlEntry]) = (None, &[]);
        let mut definitions = Vec::new();
        for entry in main.map_entries(&main.root, "configuration")? {
            match entry.name.as_str() {
                "description" | "metadata" => {}
                "trigger" => trigger = Some(&entry.node),
                "windows" => windows = main.map_entries(&entry.node, "windows")?,
                "predicates" | "patient_demographics" => {
                    add_definitions(&mut definitions, main, entry)?;
                }
                name => {
                    return Err(main.make_fault(
                        entry.line,
                        name,
                        "unknown key; the keys are predicates, patient_demographics, trigger, windows, description and metadata",
                    ));
                }
            }
        }
        if let Some(other) = other {
            for entry in other.map_entries(&other.root, "predicates file")? {
                match entry.name.as_str() {
                    "description" | "metadata" => {}
                    "predicates" | "patient_demographics" => {
                        add_definitions(&mut definitions, other, entry)?;
                    }
                    name => {
                        return Err(other.make_fault(
                            entry.line,
                            name,
                            "unknown key; a file of predicates has the keys predicates, patient_demographics, description and metadata",
                        ));
                    }
                }
            }
        }
        let Some(trigger) = trigger else {
            let message = "the key is missing; give the name of the predicate whose events define the windows";
            return Err(main.make_fault(main.root.line, "trigger", message));
        };
        Ok(Self { main, definitions, trigger, windows })
    }

    fn build(self) -> Result<CohortCriteria> {
        let trigger =
            self.main.as_text(self.trigger, "trigger", "expected the name of a predicate")?;
        let windows = self.read_windows()?;
        let (names, specials) = self.find_names(trigger, &windows)?;
        let mut notes = self.note_unused_statics(&names);
        let (plain, mut columns) = self.read_predicates(&names)?;
        columns.extend(specials.into_iter().map(|(name, counted, definition)| CountColumn {
            name: name.into(),
            counted,
            is_static: false,
            definition: definition.into(),
        }));
        let finder = ColumnFinder::new(self.main, &columns);
        let trigger = finder.find_column(trigger, self.trigger.line, "trigger")?;
        let edges = self.build_edges(&windows, &finder)?;
        let marked = self.find_marked_edges(&windows, &edges, &finder, &mut notes)?;
        let statics = (0..columns.len()).filter(|c| columns[*c].is_static).collect();
        Ok(CohortCriteria {
            path: self.main.path.clone(),
            plain,
            columns,
            statics,
            trigger,
            edges,
            index_timestamp: marked.index_timestamp,
            label: marked.label,
            notes,
        })
    }

    /// Returns a note for each static predicate that is not one of `names`, the names in use.
    fn note_unused_statics(&self, names: &HashSet<String>) -> Vec<String> {
        let mut notes = Vec::new();
        for definition in &self.definitions {
            let unused = !definition.of_patients && !names.contains(definition.entry.name.as_str());
            let says_static = matches!(&definition.entry.node.value, YamlValue::Map(entries)
                if entries.iter().any(|e| e.name == "static" && e.node.value == YamlValue::Bool(true)));
            if unused && says_static {
                notes.push(format!(
                    "{}: the predicate is static but nothing refers to it, so it selects no subjects; move it to patient_demographics to select by it",
                    definition.key
                ));
            }
        }
        notes
    }

    fn build_edges(
        &self,
        windows: &[WindowEntry<'a>],
        finder: &ColumnFinder<'_>,
    ) -> Result<Vec<WindowEdge>> {
        let parts: Vec<CohortWindow> = windows.iter().map(|w| w.window.clone()).collect();
        let tree = build_tree(&parts).map_err(|(window, message)| {
            let WindowEntry { window, line, .. } = &windows[window];
            let key = format!("windows.{}.{}", window.name, window.root_side());
            self.main.make_fault(*line, &key, message)
        })?;
        let edges = tree.iter().map(|edge| {
            let name = &edge.window.name;
            let line = windows.iter().find(|w| w.window.name == *name).map_or(1, |w| w.line);
            build_edge(edge, line, finder)
        });
        edges.collect()
    }

    /// Finds the edges of the windows with an index timestamp and a label. Adds a note if ACES
    /// takes the other side of the window as the index timestamp.
    fn find_marked_edges(
        &self,
        windows: &[WindowEntry<'a>],
        edges: &[WindowEdge],
        finder: &ColumnFinder<'_>,
        notes: &mut Vec<String>,
    ) -> Result<MarkedEdges> {
        let leaf_edge = |window: &CohortWindow| {
            let name = format!("{}.{}", window.name, window.leaf_side());
            edges.iter().position(|e| e.name == name)
        };
        let mut marked = MarkedEdges::default();
        for WindowEntry { window, label, index_timestamp, .. } in windows {
            // A window without a length, such as `end: start`, has no edge to its leaf (the end
            // that is defined from the other). `read_window` accepts neither a label nor an index
            // timestamp for it.
            let Some(edge) = leaf_edge(window) else { continue };
            if let Some((side, line)) = index_timestamp {
                let key = format!("windows.{}.index_timestamp", window.name);
                self.check_single(&marked.index_timestamp, *line, &key)?;
                marked.index_timestamp = Some((edge, *side));
                if matches!(edges[edge].target, EdgeEnd::Offset(micros) if micros < 0) {
                    notes.push(format!(
                        "{key}: the prediction time is the {side} of the window; ACES 0.7.3 exchanges the ends of windows such as `start: {}`",
                        edges[edge].definition
                    ));
                }
            }
            if let Some((predicate, line)) = label {
                let key = format!("windows.{}.label", window.name);
                self.check_single(&marked.label, *line, &key)?;
                if is_special(predicate) {
                    let message =
                        format!("{predicate} cannot be a label; name a defined predicate");
                    return Err(self.main.make_fault(*line, &key, message));
                }
                let column = finder.find_column(predicate, *line, &key)?;
                marked.label = Some(EdgeCount { edge, column });
            }
        }
        Ok(marked)
    }

    fn check_single<T>(&self, known: &Option<T>, line: usize, key: &str) -> Result<()> {
        match known {
            Some(_) => {
                let name = key.rsplit('.').next().unwrap_or(key);
                let message = format!(
                    "an earlier window has the key {name}, too, but only one window can have this key; remove it from one of the windows"
                );
                Err(self.main.make_fault(line, key, message))
            }
            None => Ok(()),
        }
    }

    fn read_windows(&self) -> Result<Vec<WindowEntry<'a>>> {
        self.windows.iter().map(|entry| self.read_window(entry)).collect()
    }

    fn read_window(&self, entry: &'a YamlEntry) -> Result<WindowEntry<'a>> {
        let source = self.main;
        let name = &entry.name;
        let window_key = format!("windows.{name}");
        if !is_name(name) {
            let message =
                "the name of a window must consist of letters, digits and _; rename the window";
            return Err(source.make_fault(entry.line, &window_key, message));
        }
        let keys = self.read_window_keys(entry, &window_key)?;
        let required = |value: Option<bool>, key: &str| {
            value.ok_or_else(|| {
                let key = format!("{window_key}.{key}");
                source.make_fault(entry.line, &key, "the key is missing; set it to true or false")
            })
        };
        if keys.start.is_none() && keys.end.is_none() {
            let message = "start and end are both null, so the window would be the whole record; one of them must refer to the trigger or to another window";
            return Err(source.make_fault(entry.line, &window_key, message));
        }
        let window = CohortWindow {
            name: name.clone(),
            start: keys
                .start
                .unwrap_or_else(|| WindowBoundary::from_record_edge(WindowSide::Start)),
            end: keys.end.unwrap_or_else(|| WindowBoundary::from_record_edge(WindowSide::End)),
            start_inclusive: required(keys.start_inclusive, "start_inclusive")?,
            end_inclusive: required(keys.end_inclusive, "end_inclusive")?,
            has: self.read_constraints(keys.has, &window_key)?,
        };
        check_order(&window)
            .map_err(|message| source.make_fault(entry.line, &window_key, message))?;
        let (label, index_timestamp) = (keys.label, keys.index_timestamp);
        let used = [
            (!window.has.is_empty()).then_some("has"),
            label.map(|_| "label"),
            index_timestamp.map(|_| "index_timestamp"),
        ];
        if window.find_boundary_at(window.leaf_side()).way.is_none()
            && let Some(key) = used.into_iter().flatten().next()
        {
            let key = format!("{window_key}.{key}");
            let message = "start and end of the window are the same time, so the window contains no events; make it longer, or remove the key";
            return Err(source.make_fault(entry.line, &key, message));
        }
        Ok(WindowEntry { window, line: entry.line, label, index_timestamp })
    }

    fn read_window_keys(&self, entry: &'a YamlEntry, window_key: &str) -> Result<WindowKeys<'a>> {
        let source = self.main;
        let mut keys = WindowKeys::default();
        for own in source.map_entries(&entry.node, window_key)? {
            let key = format!("{window_key}.{}", own.name);
            let (node, line) = (&own.node, own.line);
            let parse_boundary = || {
                let expected = "expected a text such as \"trigger + 24h\", or null";
                WindowBoundary::parse(source.as_text(node, &key, expected)?)
                    .map_err(|message| source.make_fault(line, &key, message))
            };
            match own.name.as_str() {
                "start" | "end" | "label" | "index_timestamp" if node.value == YamlValue::Null => {}
                "start" => keys.start = Some(parse_boundary()?),
                "end" => keys.end = Some(parse_boundary()?),
                "start_inclusive" => keys.start_inclusive = Some(source.as_bool(node, &key)?),
                "end_inclusive" => keys.end_inclusive = Some(source.as_bool(node, &key)?),
                "has" => keys.has = source.map_entries(node, &key)?,
                "label" => {
                    keys.label = Some((source.as_text(node, &key, "expected a predicate")?, line));
                }
                "index_timestamp" => {
                    let side = match &node.value {
                        YamlValue::Text(text) if text == "start" => WindowSide::Start,
                        YamlValue::Text(text) if text == "end" => WindowSide::End,
                        _ => {
                            return Err(source.make_node_error(
                                node,
                                &key,
                                "expected `start` or `end`, the side of the window that is the prediction time",
                            ));
                        }
                    };
                    keys.index_timestamp = Some((side, line));
                }
                _ => {
                    return Err(source.make_fault(
                        line,
                        &key,
                        "unknown key; the keys of a window are start, end, start_inclusive, end_inclusive, has, label and index_timestamp",
                    ));
                }
            }
        }
        Ok(keys)
    }

    fn read_constraints(
        &self,
        has: &[YamlEntry],
        window_key: &str,
    ) -> Result<Vec<CountConstraint>> {
        has.iter()
            .map(|own| {
                let key = format!("{window_key}.has.{}", own.name);
                let wrong =
                    || self.main.make_node_error(&own.node, &key, "expected \"(min, max)\"");
                let YamlValue::Text(text) = &own.node.value else { return Err(wrong()) };
                let bound = |text: &str| match text.trim() {
                    "" | "None" => Ok(None),
                    number => number.parse::<i64>().map(Some).map_err(|_| wrong()),
                };
                let (min, max) = text
                    .trim_matches(['(', ')'])
                    .split_once(',')
                    .filter(|(_, max)| !max.contains(','))
                    .ok_or_else(wrong)?;
                let (min, max) = (bound(min)?, bound(max)?);
                let message = match (min, max) {
                    (None, None) => "one of min and max must be a number",
                    (Some(min), Some(max)) if min > max => {
                        "min exceeds max, so no count can satisfy both"
                    }
                    _ => {
                        return Ok(CountConstraint {
                            predicate: own.name.clone(),
                            line: own.line,
                            column: 0,
                            min,
                            max,
                        });
                    }
                };
                Err(self.main.make_fault(own.line, &key, format!("{message}, found {text:?}")))
            })
            .collect()
    }

    /// Returns the names of the defined predicates that the trigger and the windows use, directly
    /// or as inputs of derived predicates. Also returns the built-in predicates (`_ANY_EVENT`, ..)
    /// that the trigger and the windows count, each as its name, what its column counts, and a
    /// description.
    #[expect(clippy::type_complexity, reason = "two lists for one caller")]
    fn find_names(
        &self,
        trigger: &str,
        windows: &[WindowEntry<'a>],
    ) -> Result<(HashSet<String>, Vec<(&'static str, CountSource, &'static str)>)> {
        // For each reference to a predicate: the file with the reference, the name of the
        // predicate, and the line and key of the reference.
        let mut found: Vec<(&ConfigFile, String, usize, String)> =
            vec![(self.main, trigger.into(), self.trigger.line, "trigger".into())];
        let mut special: HashSet<&str> = HashSet::new();
        special.insert(trigger);
        for WindowEntry { window, line, label, .. } in windows {
            let key = format!("windows.{}", window.name);
            for constraint in &window.has {
                let name = &constraint.predicate;
                special.insert(name);
                found.push((self.main, name.clone(), constraint.line, format!("{key}.has.{name}")));
            }
            for side in [WindowSide::Start, WindowSide::End] {
                if let Some(BoundarySearch::Event { predicate, .. }) =
                    &window.find_boundary_at(side).way
                {
                    if predicate == ANY_EVENT {
                        special.insert(predicate);
                    }
                    found.push((self.main, predicate.clone(), *line, format!("{key}.{side}")));
                }
            }
            if let Some((name, line)) = label {
                found.push((self.main, (*name).into(), *line, format!("{key}.label")));
            }
        }
        let specials = [
            (ANY_EVENT, CountSource::AnyEvent, "any event"),
            (RECORD_START, CountSource::RecordStart, "the first event of the record"),
            (RECORD_END, CountSource::RecordEnd, "the last event of the record"),
        ];
        let specials = specials.into_iter().filter(|(name, ..)| special.contains(name)).collect();
        let mut names: HashSet<String> = HashSet::new();
        while let Some((source, name, line, key)) = found.pop() {
            if is_special(&name) || names.contains(&name) {
                continue;
            }
            let Some(definition) = self.definitions.iter().find(|d| d.entry.name == name) else {
                let mut known: Vec<&str> =
                    self.definitions.iter().map(|d| d.entry.name.as_str()).collect();
                let more = if known.len() > 20 { ", .." } else { "" };
                known.truncate(20);
                let message = format!(
                    "there is no predicate {name:?}; the predicates are {}{more}",
                    known.join(", ")
                );
                return Err(source.make_fault(line, &key, message));
            };
            if let YamlValue::Map(entries) = &definition.entry.node.value
                && let Some(expr) = entries.iter().find(|e| e.name == "expr")
            {
                let key = format!("{}.expr", definition.key);
                let (_, inputs) = parse_expression(definition.source, &expr.node, &key)?;
                for input in inputs {
                    if is_special(&input) {
                        let message = format!(
                            "{input} cannot be part of a derived predicate; name defined predicates"
                        );
                        return Err(definition.source.make_fault(expr.line, &key, message));
                    }
                    found.push((definition.source, input, expr.line, key.clone()));
                }
            }
            names.insert(name);
        }
        Ok((names, specials))
    }

    /// Parses the definitions of the predicates `names`, and all definitions in
    /// `patient_demographics`. Returns the plain predicates, and a column of counts for each plain
    /// and each derived predicate.
    fn read_predicates(
        &self,
        names: &HashSet<String>,
    ) -> Result<(Vec<PlainPredicate>, Vec<CountColumn>)> {
        let (mut plain, mut columns) = (Vec::new(), Vec::new());
        let mut drafts: Vec<(PredicateDraft, &PredicateDefinition<'a>)> = Vec::new();
        for definition in &self.definitions {
            let PredicateDefinition { source, key, entry, of_patients } = definition;
            if !of_patients && !names.contains(&entry.name) {
                continue;
            }
            if !is_name(&entry.name) || is_special(&entry.name) {
                let message = "the name of a predicate must consist of letters, digits and _, and not be _ANY_EVENT, _RECORD_START or _RECORD_END; rename the predicate";
                return Err(source.make_fault(entry.line, key, message));
            }
            if SUMMARY_FIELDS.contains(&entry.name.as_str()) {
                let message = "a column of the result has this name; rename the predicate";
                return Err(source.make_fault(entry.line, key, message));
            }
            let YamlValue::Map(entries) = &entry.node.value else {
                let expected = "expected a mapping with the key code or expr (a file given as predicates can define it)";
                return Err(source.make_node_error(&entry.node, key, expected));
            };
            match entries.iter().find(|e| e.name == "expr") {
                None => {
                    let (predicate, says_static) = read_plain(source, key, entry, entries)?;
                    columns.push(CountColumn {
                        name: entry.name.clone(),
                        counted: CountSource::Plain(plain.len()),
                        is_static: says_static || *of_patients,
                        definition: predicate.to_string(),
                    });
                    plain.push(predicate);
                }
                Some(expr) if *of_patients => {
                    let key = format!("{key}.expr");
                    let message = "patient_demographics have codes only; write the derived predicate in predicates, with static: true";
                    return Err(source.make_fault(expr.line, &key, message));
                }
                Some(_) => {
                    drafts.push((read_derived(source, key, &entry.name, entries)?, definition));
                }
            }
        }
        self.add_derived(drafts, &mut columns)?;
        Ok((plain, columns))
    }

    /// Adds a column of counts for each derived predicate in `drafts` to `columns`, in the order in
    /// which ACES adds them: each after the columns of its inputs.
    fn add_derived(
        &self,
        drafts: Vec<(PredicateDraft, &PredicateDefinition<'a>)>,
        columns: &mut Vec<CountColumn>,
    ) -> Result<()> {
        // Collects the names in the order in which the definitions mention them, each predicate
        // after its inputs.
        let mut mentioned: Vec<&str> = Vec::new();
        for (draft, _) in &drafts {
            for name in draft.inputs.iter().chain([&draft.name]) {
                if !mentioned.contains(&name.as_str()) {
                    mentioned.push(name);
                }
            }
        }
        let mut waits: HashMap<&str, HashSet<&str>> = drafts
            .iter()
            .map(|(draft, _)| {
                (draft.name.as_str(), draft.inputs.iter().map(String::as_str).collect())
            })
            .collect();
        let mut ready: Vec<&str> =
            mentioned.iter().copied().filter(|name| !waits.contains_key(name)).collect();
        let mut order: Vec<&str> = Vec::new();
        while !ready.is_empty() {
            let mut next = Vec::new();
            for name in &ready {
                if drafts.iter().any(|(d, _)| d.name == *name) {
                    order.push(name);
                }
                for (draft, _) in &drafts {
                    if let Some(missing) = waits.get_mut(draft.name.as_str())
                        && missing.remove(name)
                        && missing.is_empty()
                    {
                        next.push(draft.name.as_str());
                    }
                }
            }
            ready = next;
        }
        if let Some((draft, definition)) =
            drafts.iter().find(|(draft, _)| !order.contains(&draft.name.as_str()))
        {
            let message = format!(
                "the predicate depends on itself through {}; remove it there",
                draft.definition
            );
            let key = format!("{}.expr", definition.key);
            return Err(definition.source.make_fault(definition.entry.line, &key, message));
        }
        for name in order {
            let Some((draft, _)) = drafts.iter().find(|(d, _)| d.name == name) else { continue };
            let inputs = draft
                .inputs
                .iter()
                .filter_map(|input| columns.iter().position(|c| c.name == *input))
                .collect();
            columns.push(CountColumn {
                name: draft.name.clone(),
                counted: CountSource::Derived { all: draft.all, inputs },
                is_static: draft.is_static,
                definition: draft.definition.clone(),
            });
        }
        Ok(())
    }
}

/// First fields of the structs that describe windows; the counts of the predicates follow.
pub(super) const SUMMARY_FIELDS: [&str; 3] =
    ["window_name", "timestamp_at_start", "timestamp_at_end"];

fn is_special(name: &str) -> bool {
    [ANY_EVENT, RECORD_START, RECORD_END].contains(&name)
}

/// Builds an edge of the tree of window ends. `line` is the line of its window.
fn build_edge(edge: &EdgeToEnd<'_>, line: usize, finder: &ColumnFinder<'_>) -> Result<WindowEdge> {
    let window = edge.window;
    let name = format!("{}.{}", window.name, edge.side);
    let target = match edge.way {
        BoundarySearch::Offset(micros) => EdgeEnd::Offset(*micros),
        BoundarySearch::Event { predicate, .. } if predicate == RECORD_START => EdgeEnd::FirstEvent,
        BoundarySearch::Event { predicate, .. } if predicate == RECORD_END => EdgeEnd::LastEvent,
        BoundarySearch::Event { predicate, backward } => EdgeEnd::Event {
            column: finder.find_column(predicate, line, &format!("windows.{name}"))?,
            backward: *backward,
        },
    };
    let is_leaf = edge.side == window.leaf_side();
    let constraints = match is_leaf {
        true => window.has.clone(),
        false => Vec::new(),
    };
    let constraints = constraints.into_iter().map(|mut constraint| {
        let name = &constraint.predicate;
        let key = format!("windows.{}.has.{name}", window.name);
        constraint.column = finder.find_column(name, constraint.line, &key)?;
        Ok(constraint)
    });
    Ok(WindowEdge {
        name,
        parent: edge.parent,
        target,
        closed: match is_leaf {
            true => (window.start_inclusive, window.end_inclusive),
            false => (false, false),
        },
        constraints: constraints.collect::<Result<_>>()?,
        definition: describe_boundary(window.find_boundary_at(edge.side)),
    })
}

/// Adds the definitions in `section` of the file `source`: the section `predicates` or
/// `patient_demographics`. A definition from an earlier file with the same name is replaced if it
/// is in the same section, and an error if it is in the other section.
fn add_definitions<'a>(
    definitions: &mut Vec<PredicateDefinition<'a>>,
    source: &'a ConfigFile,
    section: &'a YamlEntry,
) -> Result<()> {
    let of_patients = section.name == "patient_demographics";
    for entry in source.map_entries(&section.node, &section.name)? {
        let key = format!("{}.{}", section.name, entry.name);
        let definition = PredicateDefinition { source, key, entry, of_patients };
        match definitions.iter_mut().find(|d| d.entry.name == entry.name) {
            None => definitions.push(definition),
            Some(known) if known.of_patients != of_patients => {
                let message =
                    format!("the predicate is also defined as {}; remove one of them", known.key);
                return Err(source.make_fault(entry.line, &definition.key, message));
            }
            Some(known) => *known = definition,
        }
    }
    Ok(())
}
