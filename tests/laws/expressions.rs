//! Random expressions of a given type over given columns.

use std::fmt;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::functions::{AGGREGATES, Call, STOCK, WINDOWS, list_ours};

/// The type of a value, or of the innermost elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    Int,
    Float,
    Bool,
    Text,
    Time,
}

impl Leaf {
    pub const ALL: [Self; 5] = [Self::Int, Self::Float, Self::Bool, Self::Text, Self::Time];
}

/// The type of an expression: the type of its leaves, and the number of list levels above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub depth: usize,
    pub leaf: Leaf,
}

impl Type {
    pub const fn new(depth: usize, leaf: Leaf) -> Self {
        Self { depth, leaf }
    }
}

/// The name of the list lengths of a column. Columns whose lists have equal lengths have the same
/// shape. The shape `a:1/2` belongs to the lists that are the elements of the lists of shape `a:1`.
pub type Shape = Option<String>;

/// The text of an expression over columns, with its type and shape.
#[derive(Clone, Debug)]
pub struct Expr {
    pub text: String,
    pub ty: Type,
    pub shape: Shape,
    /// Whether the expression is a name, a literal or a call, which needs no parentheses as an
    /// operand.
    whole: bool,
}

impl Expr {
    pub fn column(text: String, ty: Type, shape: Shape) -> Self {
        Self { text, ty, shape, whole: true }
    }

    /// Returns the text as an operand of an operator, in parentheses if it needs them.
    pub fn closed(&self) -> String {
        if self.whole { self.text.clone() } else { format!("({})", self.text) }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Marks of redundant parentheses. The reference runs the statement with these parentheses, a cut
/// without them.
pub const OPEN: char = '⟦';
pub const CLOSE: char = '⟧';

/// A generator of expressions over `columns` that contain only calls allowed by `calls`.
pub struct Maker<'a> {
    pub random: &'a mut ChaCha8Rng,
    pub columns: &'a [Expr],
    pub calls: Calls,
}

/// The calls that an expression may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Calls that DuckDB has with the same name and meaning.
    Shared,
    /// Calls that fail for no value.
    Safe,
    All,
}

impl Calls {
    fn has(self, call: &Call) -> bool {
        match self {
            Self::Shared => call.is_shared(),
            Self::Safe => !call.fails,
            Self::All => true,
        }
    }
}

/// The type of an argument in the template of a call.
struct Spec {
    depth: usize,
    leaf: Option<Leaf>,
    number: bool,
    any_depth: bool,
    shape: Option<(char, bool)>,
    capture: Option<char>,
}

fn parse_spec(text: &str) -> Spec {
    let mut out =
        Spec { depth: 0, leaf: None, number: false, any_depth: false, shape: None, capture: None };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'l' => out.depth += 1,
            '*' => out.any_depth = true,
            'i' => out.leaf = Some(Leaf::Int),
            'f' => out.leaf = Some(Leaf::Float),
            'b' => out.leaf = Some(Leaf::Bool),
            's' => out.leaf = Some(Leaf::Text),
            't' => out.leaf = Some(Leaf::Time),
            '?' => {}
            '#' => out.number = true,
            '=' => out.capture = chars.next(),
            '.' => {
                let number = chars.next().expect("a digit follows the period in a type");
                out.shape = Some((number, chars.next_if_eq(&'^').is_some()));
            }
            other => panic!("unknown character {other} in the type {text}"),
        }
    }
    out
}

/// Splits a template into its text and the types of its arguments.
fn split_pieces(text: &str) -> Vec<Result<String, Spec>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        // A `<` that does not begin a type is an operator, as in `< ` and `<>`.
        let end = rest[at..].find('>').map(|e| at + e);
        let argument = end.filter(|e| {
            let inner = &rest[at + 1..*e];
            !inner.is_empty() && inner.chars().all(|c| "lifbst*?#=.^123".contains(c))
        });
        match argument {
            Some(end) => {
                out.push(Ok(rest[..at].to_string()));
                out.push(Err(parse_spec(&rest[at + 1..end])));
                rest = &rest[end + 1..];
            }
            None => {
                out.push(Ok(rest[..=at].to_string()));
                rest = &rest[at + 1..];
            }
        }
    }
    out.push(Ok(rest.to_string()));
    out
}

/// The leaf type, the depth and the shapes that the wildcards in the types of a template stand for
/// in one expression.
struct Choice {
    leaf: Leaf,
    depth: usize,
    shapes: Vec<(char, String)>,
}

impl Choice {
    fn ty(&self, spec: &Spec) -> Type {
        let depth = if spec.any_depth { self.depth } else { spec.depth };
        Type::new(depth, spec.leaf.unwrap_or(self.leaf))
    }

    fn shape(&self, spec: &Spec) -> Option<Shape> {
        let Some((number, outer)) = spec.shape else { return Some(None) };
        let (_, shape) = self.shapes.iter().find(|(n, _)| *n == number)?;
        if outer { find_parent(shape).map(Some) } else { Some(Some(shape.clone())) }
    }
}

fn find_parent(shape: &str) -> Option<String> {
    shape.rsplit_once('/').map(|(outer, _)| outer.to_string())
}

impl Maker<'_> {
    pub fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.random.random_range(0..n)
    }

    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.random.random_range(0..of.len())]
    }

    pub fn leaf(&mut self) -> Leaf {
        *self.pick(&Leaf::ALL)
    }

    /// Returns a random type; half of the types are not lists.
    pub fn ty(&mut self) -> Type {
        let depth = [0, 0, 0, 1, 1, 2][self.below(6)];
        Type::new(depth, self.leaf())
    }

    pub fn predicate(&mut self, levels: usize) -> Expr {
        self.make(Type::new(0, Leaf::Bool), &None, levels)
    }

    /// Returns a random expression of type `ty` with at most `levels` nested calls. If `shape` is
    /// given, its lists have this shape.
    pub fn make(&mut self, ty: Type, shape: &Shape, levels: usize) -> Expr {
        let columns: Vec<&Expr> = self
            .columns
            .iter()
            .filter(|c| c.ty == ty && (shape.is_none() || c.shape == *shape))
            .collect();
        if levels == 0 || self.chance(25) {
            if !columns.is_empty() && (shape.is_some() || levels > 0 || self.chance(85)) {
                return (*self.pick(&columns)).clone();
            }
            if shape.is_none() && (levels == 0 || self.chance(15)) {
                return self.literal(ty);
            }
        }
        if levels > 0 {
            for _ in 0..12 {
                let stock = self.calls == Calls::Shared || ty.depth == 0 && self.chance(55);
                let call = *self.pick(if stock { STOCK } else { list_ours() });
                if !self.calls.has(&call) {
                    continue;
                }
                if let Some(made) = self.call(call, Some((ty, shape)), levels - 1) {
                    return made;
                }
            }
        }
        match (columns.is_empty(), shape) {
            (false, _) => (*self.pick(&columns)).clone(),
            (true, None) => self.literal(ty),
            (true, Some(shape)) => self.converted(ty, shape),
        }
    }

    /// Returns a list of type `ty` and the shape `shape` if no column has both, by converting a
    /// column of that shape and another type.
    fn converted(&mut self, ty: Type, shape: &str) -> Expr {
        let same: Vec<&Expr> =
            self.columns.iter().filter(|c| c.shape.as_deref() == Some(shape)).collect();
        let given = if same.is_empty() {
            // No column has this shape. Counting the elements of lists of the shape one level below
            // gives a list of this shape.
            let inner = format!("{shape}/2");
            let inside: Vec<&Expr> =
                self.columns.iter().filter(|c| c.shape.as_deref() == Some(&inner)).collect();
            format!("ragged_count({}, -1)", self.pick(&inside))
        } else {
            self.pick(&same).text.clone()
        };
        let flags = format!("ragged_is_null({given})");
        let text = match ty.leaf {
            Leaf::Bool => flags,
            Leaf::Int => format!("ragged_cast({flags}, 'BIGINT')"),
            Leaf::Float => format!("ragged_cast({flags}, 'DOUBLE')"),
            Leaf::Text => format!("ragged_cast(ragged_cast({flags}, 'BIGINT'), 'VARCHAR')"),
            Leaf::Time => {
                format!("ragged_cast(ragged_cast({flags}, 'BIGINT'), 'TIMESTAMP')")
            }
        };
        Expr::column(text, ty, Some(shape.to_string()))
    }

    pub fn literal(&mut self, ty: Type) -> Expr {
        let text = match ty.depth {
            0 => self.value(ty.leaf),
            1 => {
                let n = 1 + self.below(3);
                let values: Vec<_> = (0..n).map(|_| self.value(ty.leaf)).collect();
                format!("[{}]", values.join(", "))
            }
            _ => {
                let (a, b) = (self.value(ty.leaf), self.value(ty.leaf));
                format!("[[{a}, {b}], [{a}]]")
            }
        };
        Expr::column(text, ty, None)
    }

    fn value(&mut self, leaf: Leaf) -> String {
        match leaf {
            Leaf::Int => self.below(8).to_string(),
            Leaf::Float => (*self.pick(&["0.5", "1.25", "-2.0", "0.0"])).into(),
            Leaf::Bool => (*self.pick(&["true", "false"])).into(),
            Leaf::Text => (*self.pick(&["'p'", "'q'", "''", "'LAB//HbA1c'", "'P'"])).into(),
            Leaf::Time => {
                (*self.pick(&["TIMESTAMP '2020-01-02 03:04:05'", "TIMESTAMP '2021-06-01'"])).into()
            }
        }
    }

    /// Returns a call with random arguments. If `wanted` is given, the result has this type and
    /// shape. Returns `None` if the call cannot have them, or if there is no suitable argument.
    pub fn call(
        &mut self,
        call: Call,
        wanted: Option<(Type, &Shape)>,
        levels: usize,
    ) -> Option<Expr> {
        let result = parse_spec(call.result);
        let pieces = split_pieces(call.text);
        let specs: Vec<&Spec> = pieces.iter().filter_map(|p| p.as_ref().err()).collect();
        let numbers = result.number || specs.iter().any(|s| s.number);
        let mut choice = Choice {
            leaf: if numbers { *self.pick(&[Leaf::Int, Leaf::Float]) } else { self.leaf() },
            depth: 1 + self.below(2),
            shapes: Vec::new(),
        };
        if let Some((ty, shape)) = wanted {
            match result.leaf {
                Some(leaf) if leaf != ty.leaf => return None,
                None if numbers && !matches!(ty.leaf, Leaf::Int | Leaf::Float) => return None,
                None => choice.leaf = ty.leaf,
                Some(_) => {}
            }
            if result.any_depth {
                if ty.depth == 0 {
                    return None;
                }
                choice.depth = ty.depth;
            } else if result.depth != ty.depth {
                return None;
            }
            if let Some(shape) = shape {
                let (number, outer) = result.shape?;
                let bound = if outer {
                    let inner = format!("{shape}/2");
                    self.columns.iter().find(|c| c.shape.as_ref() == Some(&inner))?;
                    inner
                } else {
                    shape.clone()
                };
                choice.shapes.push((number, bound));
            }
        }
        for spec in &specs {
            let Some((number, outer)) = spec.shape else { continue };
            if choice.shapes.iter().any(|(n, _)| *n == number) {
                continue;
            }
            let inner = specs.iter().find(|s| s.shape == Some((number, false)));
            let depth = match inner {
                Some(inner) => choice.ty(inner).depth,
                None if outer => choice.ty(spec).depth + 1,
                None => choice.ty(spec).depth,
            };
            let shapes: Vec<&String> = self
                .columns
                .iter()
                .filter(|c| c.ty.depth == depth)
                .filter_map(|c| c.shape.as_ref())
                .collect();
            if shapes.is_empty() {
                return None;
            }
            let shape = (*self.pick(&shapes)).clone();
            choice.shapes.push((number, shape));
        }
        let mut captured: Vec<(char, String)> = Vec::new();
        let mut text = String::new();
        for (i, piece) in pieces.iter().enumerate() {
            match piece {
                Ok(piece) => {
                    let mut piece = piece.clone();
                    for (name, value) in &captured {
                        piece = piece.replace(&format!("{{{name}}}"), value);
                    }
                    text.push_str(&piece);
                }
                Err(spec) => {
                    let shape = choice.shape(spec)?;
                    let given = self.make(choice.ty(spec), &shape, levels);
                    let follows = pieces.get(i + 1).and_then(|p| p.as_ref().ok());
                    let argument = is_argument(&text, follows.map_or("", |f| f.as_str()));
                    let written = if argument && !given.whole {
                        format!("{OPEN}{given}{CLOSE}")
                    } else {
                        given.closed()
                    };
                    if let Some(name) = spec.capture {
                        captured.push((name, given.closed()));
                    }
                    text.push_str(&written);
                }
            }
        }
        let shape = match result.shape {
            Some(_) => choice.shape(&result)?,
            None => None,
        };
        // A template that is not one call, with a name at the start and its parenthesis at the end,
        // is an operator.
        let whole = is_call(call.text);
        Some(Expr { text, ty: choice.ty(&result), shape, whole })
    }

    /// Returns an aggregate, or with `windows` a window function, over the rows in the order of the
    /// sort key `order`.
    pub fn over(&mut self, windows: bool, order: &str, levels: usize) -> Expr {
        let of = if windows { WINDOWS } else { AGGREGATES };
        loop {
            let call = *self.pick(of);
            if !self.calls.has(&call) {
                continue;
            }
            if let Some(mut made) = self.call(call, None, levels) {
                made.text = made.text.replace("ORDER BY ORDER", &format!("ORDER BY {order}"));
                made.whole = false;
                return made;
            }
        }
    }
}

/// Returns whether the text between `before` and `after` is a complete argument of a call.
fn is_argument(before: &str, after: &str) -> bool {
    let called = before.ends_with("(") || before.ends_with(", ");
    // The parenthesis of a call follows a name. Elements of lists in brackets and bodies of lambdas
    // do not count as arguments.
    let open = before.rfind(['(', '[', ']']).map(|at| (at, before.as_bytes()[at]));
    let name = match open {
        Some((at, b'(')) => before[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        _ => false,
    };
    called
        && name
        && !before.ends_with("IN (")
        && (after.starts_with(')') || after.starts_with(','))
}

fn is_call(text: &str) -> bool {
    let name = text.find('(').is_some_and(|at| {
        at > 0 && text[..at].chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    if !name {
        return false;
    }
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && c == ')' {
            return at + 1 == text.len();
        }
    }
    false
}
