//! Parses YAML documents to trees whose nodes know their lines.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// Maximum depth of nested values. `MAX_NODES` limits the number of nodes: an alias copies all
/// nodes of its anchor, so that a small text could otherwise become a huge tree.
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlNode {
    /// Line of the text, counted from 1.
    pub(super) line: usize,
    pub(super) value: YamlValue,
}

/// A value. Unquoted scalars are typed by the core schema of YAML 1.2.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlValue {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlEntry {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) node: YamlNode,
}

impl YamlNode {
    pub(super) fn describe_value(&self) -> String {
        match &self.value {
            YamlValue::Null => "null".into(),
            YamlValue::Bool(value) => value.to_string(),
            YamlValue::Integer(value) => value.to_string(),
            YamlValue::Float(value) => value.to_string(),
            YamlValue::Text(text) => format!("{text:?}"),
            YamlValue::List(_) => "a list".into(),
            YamlValue::Map(_) => "a mapping".into(),
        }
    }

    fn num_nodes(&self) -> usize {
        match &self.value {
            YamlValue::List(nodes) => nodes.iter().fold(1, |n, node| n + node.num_nodes()),
            YamlValue::Map(entries) => {
                entries.iter().fold(1, |n, entry| n + entry.node.num_nodes())
            }
            _ => 1,
        }
    }
}

pub(super) struct YamlFault {
    pub(super) line: usize,
    pub(super) message: String,
}

fn fail_at<T>(line: usize, message: impl Into<String>) -> Result<T, YamlFault> {
    Err(YamlFault { line, message: message.into() })
}

/// A list or mapping whose end has not been parsed yet.
struct OpenCollection {
    node: YamlNode,
    anchor: usize,
    /// In a mapping, the last key, with its line, if its value has not been parsed yet.
    key: Option<(String, usize)>,
    /// Entries that `<<` merges into this mapping, unless the mapping has its own entry of the same
    /// name.
    merged: Vec<YamlEntry>,
}

/// Parses `text`, a YAML document, and returns its root. Duplicate keys, keys that are not scalars,
/// tags, and a second document are errors.
pub(super) fn parse_yaml(text: &str) -> Result<YamlNode, YamlFault> {
    let mut tree = YamlTree::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| YamlFault {
            line: e.marker().line(),
            message: format!("the file is not valid YAML: {}", e.info()),
        })?;
        tree.add_event(event, span.start.line())?;
    }
    match tree.root {
        Some(root) => Ok(root),
        None => fail_at(1, "the file is empty"),
    }
}

#[derive(Default)]
struct YamlTree {
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, YamlNode>,
    root: Option<YamlNode>,
    nodes: usize,
}

impl YamlTree {
    fn add_event(&mut self, event: Event<'_>, line: usize) -> Result<(), YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.is_some(), line)?;
                let plain = style == ScalarStyle::Plain;
                let is_key = self.awaits_key();
                let value = match plain && !is_key {
                    true => resolve_scalar(&text),
                    false => YamlValue::Text(text.into_owned()),
                };
                let node = YamlNode { line, value };
                self.keep_anchor(anchor, &node);
                self.add_node(node)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.is_some(), line)?;
                self.open_node(YamlNode { line, value: YamlValue::List(Vec::new()) }, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.is_some(), line)?;
                self.open_node(YamlNode { line, value: YamlValue::Map(Vec::new()) }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut done) = self.open.pop() else {
                    return fail_at(line, "internal error: a list or mapping ends twice");
                };
                if let YamlValue::Map(entries) = &mut done.node.value {
                    for entry in done.merged {
                        if !entries.iter().any(|e| e.name == entry.name) {
                            entries.push(entry);
                        }
                    }
                }
                self.keep_anchor(done.anchor, &done.node);
                self.add_node(done.node)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = node.clone();
                    self.add_node(node)
                }
                None => fail_at(line, "an alias (*name) refers to a value that is not complete"),
            },
            Event::DocumentStart(_) if self.root.is_some() => fail_at(
                line,
                "the file has more than one document; write one configuration per file",
            ),
            _ => Ok(()),
        }
    }

    fn keep_anchor(&mut self, anchor: usize, node: &YamlNode) {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
    }

    /// Whether the next node is a key of the innermost open mapping.
    fn awaits_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| matches!(open.node.value, YamlValue::Map(_)) && open.key.is_none())
    }

    fn open_node(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlFault> {
        let line = node.line;
        if self.awaits_key() {
            return fail_at(line, "a key of a mapping is a list or mapping; keys must be names");
        }
        if self.open.len() >= MAX_DEPTH {
            return fail_at(line, format!("values are nested more than {MAX_DEPTH} levels deep"));
        }
        self.open.push(OpenCollection { node, anchor, key: None, merged: Vec::new() });
        Ok(())
    }

    fn add_node(&mut self, node: YamlNode) -> Result<(), YamlFault> {
        let line = node.line;
        self.nodes = self.nodes.saturating_add(node.num_nodes());
        // `nodes` may exceed the number of nodes: it counts a node once more for each list or
        // mapping around it.
        if self.nodes > MAX_NODES {
            return fail_at(line, format!("the file has more than {MAX_NODES} values"));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.value {
            YamlValue::List(nodes) => nodes.push(node),
            YamlValue::Map(entries) => match open.key.take() {
                None => match node.value {
                    YamlValue::Text(name) => open.key = Some((name, line)),
                    _ => return fail_at(line, "a key of a mapping is not a name"),
                },
                Some((name, _)) if name == "<<" => {
                    let maps = match node.value {
                        YamlValue::List(nodes) => nodes,
                        _ => vec![node],
                    };
                    for map in maps {
                        let YamlValue::Map(merged) = map.value else {
                            return fail_at(line, "<<: expected a mapping or a list of mappings");
                        };
                        for entry in merged {
                            if !open.merged.iter().any(|e| e.name == entry.name) {
                                open.merged.push(entry);
                            }
                        }
                    }
                }
                Some((name, line)) => {
                    if let Some(first) = entries.iter().find(|e| e.name == name) {
                        let message = format!(
                            "key {name:?} is also in line {}; remove one of them",
                            first.line
                        );
                        return fail_at(line, message);
                    }
                    entries.push(YamlEntry { name, line, node });
                }
            },
            _ => return fail_at(line, "internal error: a scalar has values"),
        }
        Ok(())
    }
}

fn refuse_tag(has_tag: bool, line: usize) -> Result<(), YamlFault> {
    match has_tag {
        true => fail_at(line, "tags (!name) are not supported; remove the tag"),
        false => Ok(()),
    }
}

fn resolve_scalar(text: &str) -> YamlValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return YamlValue::Null,
        "true" | "True" | "TRUE" => return YamlValue::Bool(true),
        "false" | "False" | "FALSE" => return YamlValue::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return YamlValue::Float(f64::NAN),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) if text.starts_with('-') => (-1.0, digits),
        Some(digits) => (1.0, digits),
        None => (1.0, text),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return YamlValue::Float(sign * f64::INFINITY);
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        let number = text.strip_prefix(prefix).and_then(|n| i64::from_str_radix(n, radix).ok());
        if let Some(number) = number {
            return YamlValue::Integer(number);
        }
    }
    // Rust's `parse` accepts words such as `infinity` as numbers, but in YAML they are strings.
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
        && digits.bytes().any(|b| b.is_ascii_digit());
    match (numeric, text.parse::<i64>(), text.parse::<f64>()) {
        (true, Ok(number), _) => YamlValue::Integer(number),
        (true, _, Ok(number)) => YamlValue::Float(number),
        _ => YamlValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> YamlValue {
        parse_yaml(text).map(|node| node.value).map_err(|f| f.message).unwrap()
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        for (text, value) in [
            ("null", YamlValue::Null),
            ("~", YamlValue::Null),
            ("True", YamlValue::Bool(true)),
            ("yes", YamlValue::Text("yes".into())),
            ("None", YamlValue::Text("None".into())),
            ("'5'", YamlValue::Text("5".into())),
            ("-5", YamlValue::Integer(-5)),
            ("0x1F", YamlValue::Integer(31)),
            ("1e3", YamlValue::Float(1000.0)),
            ("-.inf", YamlValue::Float(f64::NEG_INFINITY)),
            ("98.6", YamlValue::Float(98.6)),
            ("infinity", YamlValue::Text("infinity".into())),
            ("1-2", YamlValue::Text("1-2".into())),
            ("99999999999999999999", YamlValue::Float(1e20)),
            ("(1, None)", YamlValue::Text("(1, None)".into())),
            ("end -> death", YamlValue::Text("end -> death".into())),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
    }

    #[test]
    fn aliases_and_merged_keys_are_resolved() {
        let YamlValue::Map(entries) = parse("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: *a\n")
        else {
            panic!("no mapping");
        };
        let names = |node: &YamlNode| match &node.value {
            YamlValue::Map(entries) => {
                entries.iter().map(|e| (e.name.clone(), e.node.value.clone())).collect()
            }
            _ => Vec::new(),
        };
        let pair = |name: &str, n| (name.to_owned(), YamlValue::Integer(n));
        assert_eq!(names(&entries[1].node), [pair("y", 3), pair("x", 1)]);
        assert_eq!(names(&entries[2].node), [pair("x", 1), pair("y", 2)]);
        assert_eq!(entries.iter().map(|e| e.line).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn texts_without_bounds_are_refused() {
        let nested = "[".repeat(100) + &"]".repeat(100);
        let mut laughs = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for (before, name) in "abcdefgh".chars().zip("bcdefghi".chars()) {
            let aliases = vec![format!("*{before}"); 10].join(", ");
            laughs.push_str(&format!("{name}: &{name} [{aliases}]\n"));
        }
        for text in
            [nested.as_str(), laughs.as_str(), "a: &a [*a]", "{a: 1", "[a]: b", "a: b\na: c"]
        {
            assert!(parse_yaml(text).is_err(), "{text}");
        }
    }
}
