//! Random INSERT statements, whose queries have VALUES, CASE and UNION.

use super::changes::{COPY, Change};
use super::*;

/// Types of columns, each with another type whose values INSERT casts to it.
const WIDENED: [(&str, &str); 4] = [("f", "i"), ("n", "i"), ("t", "d"), ("lf", "li")];

impl Queries {
    /// Returns an INSERT of random rows into the table [`COPY`], which has the columns `columns` of
    /// the table at index `at`. The query `rows` returns the first rows of the table.
    pub(super) fn make_insert(&mut self, world: &World, at: usize, rows: String) -> Change {
        let columns = self.tables[at].1.clone();
        let schema = world.tables[at].rows.schema();
        let mut named: Columns = Vec::new();
        for _ in 0..1 + self.below(4) {
            let column = self.pick(&columns);
            if !named.contains(&column) {
                named.push(column);
            }
        }
        let types: Vec<&'static str> = named.iter().map(|(_, ty)| *ty).collect();
        let query = self.draw_inserted(&types);
        let aliases: Vec<String> = (0..named.len()).map(|i| format!("c{i}")).collect();
        let derived = format!("({query}) AS z({})", aliases.join(", "));
        let items: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                let to = schema.field(i).data_type();
                let value = named.iter().position(|(n, _)| n == name);
                let value = value.map_or("NULL".to_string(), |i| format!("c{i}"));
                format!("arrow_cast({value}, '{to}') AS {name}")
            })
            .collect();
        let inserted = match self.chance(30) {
            true => {
                let items =
                    named.iter().enumerate().map(|(i, (name, _))| format!("c{i} AS {name}"));
                let items = items.collect::<Vec<_>>().join(", ");
                format!("BY NAME SELECT {items} FROM {derived}")
            }
            false => format!("({}) {query}", join_names(&named)),
        };
        Change {
            rows,
            sql: format!("INSERT INTO {COPY} {inserted}"),
            expected: format!(
                "SELECT * FROM {COPY} UNION ALL SELECT {} FROM {derived}",
                items.join(", ")
            ),
        }
    }

    /// Returns a query with one column for each of the types.
    fn draw_inserted(&mut self, types: &[&'static str]) -> String {
        let first = self.draw_rows(types);
        // UNION may return either of two equal floats, 0.0 and -0.0.
        let has_floats = types.iter().any(|ty| ty.ends_with('f'));
        let union = if has_floats || self.chance(50) { "UNION ALL" } else { "UNION" };
        match self.below(4) {
            0 => first,
            1 => format!("{first} {union} {}", self.draw_rows(types)),
            2 => format!("SELECT * FROM ({first}) AS y"),
            _ => {
                let second = self.draw_rows(types);
                format!("WITH y AS ({first} {union} {second}) SELECT * FROM y")
            }
        }
    }

    /// Returns a VALUES, or a query with CASE of a table.
    fn draw_rows(&mut self, types: &[&'static str]) -> String {
        if self.chance(40) {
            let rows: Vec<String> = (0..1 + self.below(3))
                .map(|_| {
                    let cells = types.iter().map(|ty| self.draw_cell(ty, &[]));
                    format!("({})", cells.collect::<Vec<_>>().join(", "))
                })
                .collect();
            return format!("VALUES {}", rows.join(", "));
        }
        let from = self.base();
        let items: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| {
                let [a, b] = [0, 1].map(|_| self.draw_cell(ty, &from.columns));
                let c = self.value("b", &from.columns, 1).sql(false);
                format!("CASE WHEN {c} THEN {a} ELSE {b} END AS c{i}")
            })
            .collect();
        let w = self.condition(&from.columns, false).sql(false);
        format!("SELECT {} FROM {} WHERE {w}", items.join(", "), from.node.sql(false))
    }

    /// Returns a value of the type, or of another type that INSERT casts to it.
    fn draw_cell(&mut self, ty: &'static str, scope: &[Col]) -> String {
        let other = WIDENED.iter().find(|(to, _)| *to == ty).map(|(_, from)| *from);
        let ty = other.filter(|_| self.chance(50)).unwrap_or(ty);
        self.value(ty, scope, 1).sql(false)
    }
}
