//! Statements as trees. Some nodes can be written in several equivalent ways.
//!
//! The reference runs the statement with each node in its first way, and a cut runs it with each
//! node in a random way. Comparing the results checks the laws that make the ways equivalent.

use std::collections::BTreeSet;

/// The kind of a node, which decides what may replace it when a statement is reduced to a smaller
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value of this type. Another value of the type or a literal may replace it.
    Value(&'static str),
    /// A query with columns of these names and types. Another query with the same columns may
    /// replace it.
    Query(String),
    /// A part of the statement that may be left out.
    Optional,
    /// A part that must stay, although its children may be replaced.
    Fixed,
}

/// One way to write a node. In the text, `{0}`, `{1}` and so on stand for the children.
#[derive(Clone, Debug)]
pub struct Way {
    /// The name of the law by which this text is equivalent to that of the first way.
    pub law: &'static str,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub role: Role,
    pub children: Vec<Node>,
    pub ways: Vec<Way>,
    /// The index of the way in which a cut writes the node.
    pub way: usize,
}

/// The children of a node that is being built, in the order of their placeholders.
#[derive(Default)]
pub struct Parts(Vec<Node>);

impl Parts {
    /// Adds a child and returns its placeholder, such as `{0}`.
    pub fn put(&mut self, node: Node) -> String {
        self.0.push(node);
        format!("{{{}}}", self.0.len() - 1)
    }

    pub fn node(self, role: Role, text: impl Into<String>) -> Node {
        let first = Way { law: "", text: text.into() };
        Node { role, children: self.0, ways: vec![first], way: 0 }
    }
}

impl Node {
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Parts::default().node(role, text)
    }

    /// Adds another way to write the node, with the law that makes it equivalent.
    #[must_use]
    pub fn or(mut self, law: &'static str, text: impl Into<String>) -> Self {
        self.ways.push(Way { law, text: text.into() });
        self
    }

    /// Returns the SQL text. With `drawn`, each node is written in the way `way`, otherwise in its
    /// first way.
    pub fn sql(&self, drawn: bool) -> String {
        let text = &self.ways[if drawn { self.way } else { 0 }].text;
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find('{') {
            let end = rest[at..].find('}').map_or(rest.len(), |e| at + e);
            let child: usize = rest[at + 1..end].parse().expect("the number of a child");
            out.push_str(&rest[..at]);
            out.push_str(&self.children[child].sql(drawn));
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        out
    }

    /// Draws a way for each node. `pick` receives the number of ways and returns an index below it.
    pub fn draw(&mut self, pick: &mut dyn FnMut(usize) -> usize) {
        self.way = if self.ways.len() > 1 { pick(self.ways.len()) } else { 0 };
        for child in &mut self.children {
            child.draw(pick);
        }
    }

    /// Adds the names of the laws that the drawn ways use to `out`.
    pub fn laws(&self, out: &mut BTreeSet<&'static str>) {
        if self.way > 0 {
            out.insert(self.ways[self.way].law);
        }
        for child in &self.children {
            child.laws(out);
        }
    }

    /// Returns smaller trees, each of which lacks some nodes of this one. The smallest come first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut out = Vec::new();
        for mut other in self.instead() {
            other.way = other.way.min(other.ways.len() - 1);
            out.push(other);
        }
        if self.way > 0 {
            out.push(Self { way: 0, ..self.clone() });
        }
        for (i, child) in self.children.iter().enumerate() {
            for other in child.smaller() {
                let mut next = self.clone();
                next.children[i] = other;
                out.push(next);
            }
        }
        out
    }

    /// Returns the nodes that may replace this one when a statement is reduced.
    fn instead(&self) -> Vec<Self> {
        match &self.role {
            Role::Fixed => Vec::new(),
            Role::Optional if self.sql(true).is_empty() => Vec::new(),
            Role::Optional => vec![Self::text(Role::Optional, "")],
            Role::Query(_) => self.descendants(4),
            Role::Value(ty) => {
                let mut out = Vec::new();
                if !self.children.is_empty() {
                    let literals = crate::grammar::list_literals(ty);
                    out.extend(literals.iter().take(3).map(|l| Self::text(self.role.clone(), *l)));
                    out.extend(self.descendants(4));
                }
                out
            }
        }
    }

    /// Returns at most `most` of the nearest descendants with the same role.
    fn descendants(&self, most: usize) -> Vec<Self> {
        let mut out = Vec::new();
        for child in &self.children {
            if child.role == self.role {
                out.push(child.clone());
            } else {
                out.extend(child.descendants_of(&self.role, most));
            }
        }
        out.truncate(most);
        out
    }

    fn descendants_of(&self, role: &Role, most: usize) -> Vec<Self> {
        let mut out = Vec::new();
        for child in &self.children {
            if child.role == *role {
                out.push(child.clone());
            } else {
                out.extend(child.descendants_of(role, most));
            }
        }
        out.truncate(most);
        out
    }
}

/// A statement of the generator [`crate::queries`], as a tree.
#[derive(Clone, Debug)]
pub struct Form {
    pub root: Node,
    /// Whether ORDER BY determines the order of all rows completely.
    pub ordered: bool,
    /// Whether the statement cannot be a subquery, because its columns have no names or share a
    /// name.
    pub alone: bool,
}

impl Form {
    /// Returns the statement with newly drawn ways for its nodes.
    pub fn drawn(&self, pick: &mut dyn FnMut(usize) -> usize) -> Self {
        let mut out = self.clone();
        out.root.draw(pick);
        out
    }
}
