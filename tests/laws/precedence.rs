//! Expressions written with all parentheses, and with as few as the precedence of operators allows.

use super::{Col, Columns, Queries, query_role};
use crate::forms::{Node, Parts, Role};

// The precedences of operators in DuckDB. An operator with a larger number binds more tightly.
const OR: u8 = 5;
const AND: u8 = 10;
const NOT: u8 = 15;
const IS: u8 = 17;
const COMPARISON: u8 = 20;
/// The precedence of LIKE, IN and BETWEEN.
const PREDICATE: u8 = 21;
/// The precedence of `||`, `|`, `&`, `<<`, `>>` and the prefix `~`.
const OTHER: u8 = 25;
const SUM: u8 = 30;
const PRODUCT: u8 = 40;
const POWER: u8 = 50;
const SIGN: u8 = 60;
const CAST: u8 = 70;
const ATOM: u8 = 100;

/// The SQL of an expression in two forms: with all parentheses, and with few.
struct Term {
    /// The text with all parentheses.
    full: String,
    /// The text with only those parentheses that the precedences require.
    few: String,
    /// The precedence of the outermost operator.
    level: u8,
}

impl Term {
    fn new(level: u8, full: String, few: String) -> Self {
        Self { full: format!("({full})"), few, level }
    }

    fn from_atom(text: &str) -> Self {
        Self { full: text.into(), few: text.into(), level: ATOM }
    }

    /// Returns the text with few parentheses as an operand. The operand is in parentheses if its
    /// precedence is less than `least`.
    fn within(&self, least: u8) -> String {
        match self.level >= least {
            true => self.few.clone(),
            false => format!("({})", self.few),
        }
    }

    /// Joins two operands with an operator that is left-associative.
    fn join(left: &Self, op: &str, right: &Self, level: u8) -> Self {
        Self::join_within(left, op, right, level, level)
    }

    /// Joins two operands with an operator. The left operand needs parentheses if its precedence is
    /// less than `least`.
    fn join_within(left: &Self, op: &str, right: &Self, level: u8, least: u8) -> Self {
        Self::new(
            level,
            format!("{} {op} {}", left.full, right.full),
            format!("{} {op} {}", left.within(least), right.within(level + 1)),
        )
    }

    /// Returns a prefix operator applied to an operand, which needs parentheses if its precedence
    /// is less than `least`.
    fn prefix(op: &str, of: &Self, level: u8, least: u8) -> Self {
        Self::new(level, format!("{op} {}", of.full), format!("{op} {}", of.within(least)))
    }

    /// Returns a test such as IS NULL applied to the operand before it, in the forms `full` and
    /// `few`.
    fn postfix(of: &Self, full: &str, few: &str) -> Self {
        Self::new(IS, format!("{} {full}", of.full), format!("{} {few}", of.within(IS)))
    }
}

impl Queries {
    /// Returns a query of expressions in two ways: with all parentheses, and with only those that
    /// the precedences require.
    pub(super) fn make_precedences(&mut self) -> (Node, Columns) {
        let from = self.base();
        let mut p = Parts::default();
        let r = p.put(from.node);
        let mut columns = Columns::new();
        let mut items = Vec::new();
        for i in 0..3 {
            let ty = ["b", "b", "i", "f", "s", "li"][self.below(6)];
            let item = self.make_precedence(ty, &from.columns);
            items.push(format!("{} AS c{i}", p.put(item)));
            columns.push((format!("c{i}"), ty));
        }
        let w = p.put(self.make_precedence("b", &from.columns));
        let text = format!("SELECT {} FROM {r} WHERE {w}", items.join(", "));
        (p.node(query_role(&columns), text), columns)
    }

    fn make_precedence(&mut self, ty: &'static str, scope: &[Col]) -> Node {
        let term = self.term(ty, scope, 3);
        Node::text(Role::Fixed, term.full).or("parentheses that change nothing", term.few)
    }

    fn pick_atom(&mut self, ty: &'static str, scope: &[Col]) -> Term {
        let fitting: Vec<&Col> = scope.iter().filter(|c| c.ty == ty).collect();
        if !fitting.is_empty() && self.chance(80) {
            return Term::from_atom(&fitting[self.below(fitting.len())].text);
        }
        // Omits negative literals, because the parser reads them as an operator and a literal.
        let literals: &[&str] = match ty {
            "i" => &["0", "1", "2", "7"],
            "f" => &["0.5::DOUBLE", "2.0::DOUBLE"],
            "s" => &["'a'", "'%'", "''"],
            "li" => &["[1, 2]", "[0]"],
            _ => &["true", "false"],
        };
        Term::from_atom(literals[self.below(literals.len())])
    }

    fn term(&mut self, ty: &'static str, scope: &[Col], depth: usize) -> Term {
        if depth == 0 || self.chance(15) {
            return self.pick_atom(ty, scope);
        }
        match ty {
            "i" => self.integer_term(scope, depth - 1),
            "f" => self.float_term(scope, depth - 1),
            "b" => self.condition_term(scope, depth - 1),
            // Strings and lists are joined by `||`.
            _ => {
                let left = self.term(ty, scope, depth - 1);
                let right = if self.chance(40) { "i" } else { ty };
                let right = self.term(right, scope, depth - 1);
                Term::join(&left, "||", &right, OTHER)
            }
        }
    }

    fn integer_term(&mut self, scope: &[Col], depth: usize) -> Term {
        let left = self.term("i", scope, depth);
        match self.below(10) {
            0 => return Term::prefix("-", &left, SIGN, SIGN),
            1 => return Term::prefix("~", &left, OTHER, OTHER + 1),
            2 => return Term::join(&left, "%", &Term::from_atom("3"), PRODUCT),
            3 | 4 => {
                let op = ["<<", ">>"][self.below(2)];
                let bits = ["1", "2", "3"][self.below(3)];
                return Term::join(&left, op, &Term::from_atom(bits), OTHER);
            }
            _ => {}
        }
        let right = self.term("i", scope, depth);
        let (op, level) =
            [("+", SUM), ("-", SUM), ("*", PRODUCT), ("|", OTHER), ("&", OTHER)][self.below(5)];
        Term::join(&left, op, &right, level)
    }

    fn float_term(&mut self, scope: &[Col], depth: usize) -> Term {
        let left = self.term("f", scope, depth);
        match self.below(8) {
            0 => return Term::prefix("-", &left, SIGN, SIGN),
            1 => {
                // The operand of the cast is an integer, so that the cast changes the type.
                let of = self.term("i", scope, depth);
                let few = format!("{}::DOUBLE", of.within(CAST));
                return Term::new(CAST, format!("{}::DOUBLE", of.full), few);
            }
            2..=4 => {
                let power = ["2", "3"][self.below(2)];
                return Term::join(&left, "**", &Term::from_atom(power), POWER);
            }
            _ => {}
        }
        let ty = ["f", "f", "i"][self.below(3)];
        let right = self.term(ty, scope, depth);
        let (op, level) = [("+", SUM), ("-", SUM), ("*", PRODUCT)][self.below(3)];
        Term::join(&left, op, &right, level)
    }

    fn condition_term(&mut self, scope: &[Col], depth: usize) -> Term {
        let not = ["", "", "NOT "][self.below(3)];
        let ty = ["i", "i", "s", "b"][self.below(4)];
        match self.below(14) {
            0 | 1 => {
                let (a, b) = (self.term("i", scope, depth), self.term("i", scope, depth));
                let op = ["=", "<>", "<", "<=", ">", ">="][self.below(6)];
                Term::join_within(&a, op, &b, COMPARISON, COMPARISON + 1)
            }
            2 => {
                let (a, b) = (self.term("b", scope, depth), self.term("b", scope, depth));
                Term::join_within(&a, "=", &b, COMPARISON, COMPARISON + 1)
            }
            3 | 4 => {
                let (a, b) = (self.term("s", scope, depth), self.term("s", scope, depth));
                let op = format!("{not}{}", ["LIKE", "ILIKE"][self.below(2)]);
                Term::join_within(&a, &op, &b, PREDICATE, PREDICATE + 1)
            }
            5 => {
                let [a, b, c] = [(); 3].map(|()| self.term("i", scope, depth));
                let least = PREDICATE + 1;
                Term::new(
                    PREDICATE,
                    format!("{} {not}BETWEEN {} AND {}", a.full, b.full, c.full),
                    format!(
                        "{} {not}BETWEEN {} AND {}",
                        a.within(least),
                        b.within(least),
                        c.within(least)
                    ),
                )
            }
            6 => {
                let [a, b, c] = [(); 3].map(|()| self.term("i", scope, depth));
                Term::new(
                    PREDICATE,
                    format!("{} {not}IN ({}, {})", a.full, b.full, c.full),
                    format!("{} {not}IN ({}, {})", a.within(PREDICATE + 1), b.few, c.few),
                )
            }
            7 => {
                let of = self.term(ty, scope, depth);
                let (full, few) = [
                    ("IS NULL", "IS NULL"),
                    ("IS NOT NULL", "IS NOT NULL"),
                    ("IS NULL", "ISNULL"),
                    ("IS NOT NULL", "NOTNULL"),
                ][self.below(4)];
                Term::postfix(&of, full, few)
            }
            8 => {
                let of = self.term("b", scope, depth);
                let test = ["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"][self.below(4)];
                Term::postfix(&of, test, test)
            }
            9 => {
                let (a, b) = (self.term(ty, scope, depth), self.term(ty, scope, depth));
                let op = format!("IS {not}DISTINCT FROM");
                Term::join(&a, &op, &b, IS)
            }
            10 => Term::prefix("NOT", &self.term("b", scope, depth), NOT, NOT),
            other => {
                let (a, b) = (self.term("b", scope, depth), self.term("b", scope, depth));
                let (op, level) = if other < 13 { ("AND", AND) } else { ("OR", OR) };
                Term::join(&a, op, &b, level)
            }
        }
    }
}
