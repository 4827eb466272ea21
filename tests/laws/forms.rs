//! Statements as trees: every part has one meaning, and some parts can be written in several ways.
//!
//! The reference writes every part in its first way. A cut writes each part in a way drawn for it, so the
//! equality of the answers is the law that makes the ways equal.

use std::collections::BTreeSet;

/// What may stand in place of a part when a statement is made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value of a type: another value of that type, or a literal.
    Value(&'static str),
    /// A query with columns of these names and types: another such query.
    Query(String),
    /// Nothing.
    Optional,
    /// Only what its own parts leave.
    Fixed,
}

/// One way to write a part: `{0}`, `{1}`, .. stand for its children.
#[derive(Clone, Debug)]
pub struct Way {
    /// The law that says it means the same as the first way.
    pub law: &'static str,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub role: Role,
    pub children: Vec<Node>,
    pub ways: Vec<Way>,
    /// The way a cut writes it in.
    pub way: usize,
}

/// Children of a node under construction, by the placeholders that stand for them.
#[derive(Default)]
pub struct Parts(Vec<Node>);

impl Parts {
    /// Adds a child and returns its placeholder.
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

    /// Adds another way to write it.
    #[must_use]
    pub fn or(mut self, law: &'static str, text: impl Into<String>) -> Self {
        self.ways.push(Way { law, text: text.into() });
        self
    }

    /// As SQL: in the first ways, or in those drawn.
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

    /// Draws a way for every part: `pick` is given the number of ways.
    pub fn draw(&mut self, pick: &mut dyn FnMut(usize) -> usize) {
        self.way = if self.ways.len() > 1 { pick(self.ways.len()) } else { 0 };
        for child in &mut self.children {
            child.draw(pick);
        }
    }

    /// Names of the laws that the drawn ways use.
    pub fn laws(&self, out: &mut BTreeSet<&'static str>) {
        if self.way > 0 {
            out.insert(self.ways[self.way].law);
        }
        for child in &self.children {
            child.laws(out);
        }
    }

    /// Trees that are this one with something left out, the smallest first.
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

    /// What may stand in its place.
    fn instead(&self) -> Vec<Self> {
        match &self.role {
            Role::Fixed => Vec::new(),
            Role::Optional if self.sql(true).is_empty() => Vec::new(),
            Role::Optional => vec![Self::text(Role::Optional, "")],
            Role::Query(_) => self.descendants(4),
            Role::Value(ty) => {
                let mut out = Vec::new();
                if !self.children.is_empty() {
                    let literals = crate::grammar::literals(ty);
                    out.extend(literals.iter().take(3).map(|l| Self::text(self.role.clone(), *l)));
                    out.extend(self.descendants(4));
                }
                out
            }
        }
    }

    /// The first parts below of its role.
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

/// A statement of [`crate::queries`].
#[derive(Clone, Debug)]
pub struct Form {
    pub root: Node,
    /// Its rows come in one order.
    pub ordered: bool,
}

impl Form {
    /// The same with ways drawn anew.
    pub fn drawn(&self, pick: &mut dyn FnMut(usize) -> usize) -> Self {
        let mut out = self.clone();
        out.root.draw(pick);
        out
    }
}
