//! Random INSERT, DELETE and UPDATE statements. Each has a query that returns the rows that the
//! table must have afterwards.

use super::*;

/// A statement that changes the table [`COPY`].
pub struct Change {
    /// A query whose rows the table [`COPY`] is created with.
    pub rows: String,
    pub sql: String,
    /// A query over the unchanged table that returns its rows after the change.
    pub expected: String,
}

pub const COPY: &str = "changed";

impl Queries {
    pub fn change(&mut self, world: &World) -> Change {
        self.names = 0;
        let at = self.below(self.tables.len());
        let (table, columns) = self.tables[at].clone();
        let schema = world.tables[at].rows.schema();
        let scope: Vec<Col> =
            columns.iter().map(|(n, ty)| Col { text: format!("{COPY}.{n}"), ty }).collect();
        // Names the columns, because a table of files may have them in another order.
        let rows = format!("SELECT {} FROM {table}", join_names(&columns));
        if self.chance(40) {
            return self.make_insert(world, at, rows);
        }
        let (condition, drawn) = self.draw_condition(&scope);
        if self.chance(40) {
            return Change {
                rows,
                sql: format!("DELETE FROM {COPY} WHERE {drawn}"),
                expected: format!("SELECT * FROM {COPY} WHERE ({condition}) IS NOT TRUE"),
            };
        }
        let set: Vec<usize> = (0..2).map(|_| self.below(columns.len())).collect();
        let (mut assignments, mut items) = (Vec::new(), Vec::new());
        for (i, (name, ty)) in columns.iter().enumerate() {
            if !set.contains(&i) {
                items.push(name.clone());
                continue;
            }
            let value = self.value(ty, &scope, 2).sql(false);
            let to = schema.field(i).data_type();
            items.push(format!(
                "CASE WHEN {condition} THEN arrow_cast({value}, '{to}') ELSE {name} END AS {name}"
            ));
            assignments.push(format!("{name} = {value}"));
        }
        let set = assignments.join(", ");
        Change {
            rows,
            sql: format!("UPDATE {COPY} SET {set} WHERE {drawn}"),
            expected: format!("SELECT {} FROM {COPY}", items.join(", ")),
        }
    }

    /// Returns a condition in two equivalent forms: the first for the query, the second for DELETE
    /// or UPDATE.
    fn draw_condition(&mut self, scope: &[Col]) -> (String, String) {
        if self.chance(70) {
            let text = self.condition(scope, true).sql(false);
            return (text.clone(), text);
        }
        let mut test = self.make_outer_test(COPY);
        test.draw(&mut |n| self.below(n));
        (test.sql(false), test.sql(true))
    }
}
