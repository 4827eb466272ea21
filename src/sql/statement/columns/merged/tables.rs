//! Collects the tables of a FROM, each with the columns that USING merges.

use std::ops::Range;

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    TableAlias, TableFactor, TableWithJoins, VisitMut,
};

use crate::sql::base::syntax::{list_plain_arguments, to_plain_name};
use crate::sql::statement::columns::join_constraints::{
    find_constraint_mut, join_constraint, list_using_columns,
};
use crate::sql::statement::columns::merged::bare_names::BareNames;
use crate::sql::statement::columns::merged::known_columns::{FromColumns, TableColumns};
use crate::sql::statement::columns::merged::names::{find_last_ident, qualify_column};
use crate::sql::statement::columns::position_columns::match_position;
use crate::sql::statement::expressions::predicates::call_function;
use crate::sql::statement::folding::{fold_name, is_same_name};

/// Prefix of the aliases that subqueries in FROM get if they have none.
const SIDE: &str = "__serrate_side_";

pub(super) struct MergedTable {
    pub(super) name: ObjectName,
    /// The table as it is written in FROM.
    pub(super) text: String,
    /// Columns of this table into which USING merges columns of other tables, each with the
    /// expression of the merged column: `k` with `coalesce(a.k, b.k)` for `a` in `a FULL JOIN b
    /// USING (k)`.
    pub(super) own: Vec<(Ident, Expr)>,
    /// The columns of this table that USING merges into a column of an earlier table: `k` for `b`
    /// in `a JOIN b USING (k)`.
    pub(super) merged: Vec<ObjectName>,
    /// Columns of `own` that several joins merge, as in `a JOIN b USING (k) JOIN c USING (k)`. The
    /// planner rejects their unqualified names as ambiguous.
    pub(super) repeated: Vec<Ident>,
}

/// Whether USING merges columns of other tables into the column `name` of this table.
pub(super) fn owns_column(table: &MergedTable, name: &Ident) -> bool {
    table.own.iter().any(|(own, _)| is_same_name(own, name))
}

/// Whether USING merges the column `name` of this table into a column of an earlier table.
pub(super) fn is_merged_in(table: &MergedTable, name: &Ident) -> bool {
    table
        .merged
        .iter()
        .any(|merged| find_last_ident(merged).is_some_and(|m| is_same_name(&m, name)))
}

/// Whether `name`, such as `t` or `schema.t`, is the name of `table`, with or without its schema.
pub(super) fn has_name(table: &MergedTable, name: &[Ident]) -> bool {
    let known: Vec<&Ident> = table.name.0.iter().filter_map(|part| part.as_ident()).collect();
    let skipped = known.len().checked_sub(name.len());
    skipped.is_some_and(|skipped| {
        known.iter().skip(skipped).zip(name).all(|(known, name)| is_same_name(known, name))
    })
}

/// Collects the tables of a FROM with the columns that USING merges.
pub(super) struct TableMerger<'a> {
    /// Whether ON replaces each USING that DataFusion cannot plan.
    by_conditions: bool,
    relations: &'a TableColumns,
    columns: &'a FromColumns,
    /// Number of subqueries that have got an alias.
    unnamed: usize,
    pub(super) tables: Vec<MergedTable>,
}

/// The indices of the tables on the two sides of a join.
struct JoinSides {
    left: Range<usize>,
    right: Range<usize>,
}

/// The condition of a join for one column of its USING.
struct UsingCondition {
    equal: Expr,
    /// Whether the condition compares a merged value such as `coalesce(a.k, b.k)`, or DataFusion
    /// cannot plan the column in USING.
    needs_on: bool,
}

impl<'a> TableMerger<'a> {
    pub(super) fn new(
        by_conditions: bool,
        relations: &'a TableColumns,
        columns: &'a FromColumns,
    ) -> Self {
        Self { by_conditions, relations, columns, unnamed: 0, tables: Vec::new() }
    }

    /// Adds the tables of a part of FROM. Returns `None` if a table has no name, or if it is
    /// unknown which table has a merged column.
    pub(super) fn add_from(&mut self, from: &mut TableWithJoins) -> Option<()> {
        let merges =
            from.joins.iter().any(|join| !list_using_columns(&join.join_operator).is_empty());
        let first = self.tables.len();
        self.add_table(&mut from.relation, merges)?;
        for join in &mut from.joins {
            use JoinOperator as J;
            let before = self.tables.len();
            match &join.join_operator {
                // These joins return only the columns of the left input, so USING merges no
                // columns.
                J::LeftSemi(_) | J::LeftAnti(_) | J::Semi(_) | J::Anti(_) => continue,
                J::RightSemi(_) | J::RightAnti(_) => return None,
                operator if matches!(join_constraint(operator), Some(JoinConstraint::Natural)) => {
                    return None;
                }
                _ => self.add_table(&mut join.relation, merges)?,
            }
            let sides = JoinSides { left: first..before, right: before..self.tables.len() };
            self.merge_join(join, &sides)?;
        }
        Some(())
    }

    fn add_table(&mut self, factor: &mut TableFactor, merges: bool) -> Option<()> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            return self.add_from(table_with_joins);
        }
        let text = find_written_text(factor);
        if let TableFactor::Derived { alias: alias @ None, .. } = factor
            && merges
        {
            self.unnamed += 1;
            let name = Ident::with_quote('"', format!("{SIDE}{}", self.unnamed));
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        let name = match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => {
                ObjectName::from(vec![alias.name.clone()])
            }
            TableFactor::Table { name, args: None, .. } => name.clone(),
            _ => return None,
        };
        self.tables.push(MergedTable { name, text, own: vec![], merged: vec![], repeated: vec![] });
        Some(())
    }

    /// Merges the columns of USING of a join. USING becomes ON if it needs to. In a join without
    /// USING, replaces the unqualified names of merged columns.
    fn merge_join(&mut self, join: &mut Join, sides: &JoinSides) -> Option<()> {
        let columns = list_using_columns(&join.join_operator).to_vec();
        if columns.is_empty() {
            let tables = &self.tables[sides.left.start..];
            let names: Vec<_> = tables.iter().flat_map(|t| t.own.iter().cloned()).collect();
            if let Some(JoinConstraint::On(on)) = find_constraint_mut(&mut join.join_operator) {
                let _ = on.visit(&mut BareNames::new(&names, self.columns));
            }
            replace_in_lateral(&mut join.relation, &self.tables, self.columns);
        }
        let mut condition: Option<Expr> = None;
        let (mut needs_on, mut by_position) = (false, false);
        for column in &columns {
            let name = column.0.last()?.as_ident()?;
            if match_position(name).is_some() {
                by_position = true;
                continue;
            }
            let merged = self.merge_column(name, &join.join_operator, sides)?;
            needs_on |= merged.needs_on;
            condition = Some(match condition {
                Some(before) => Expr::BinaryOp {
                    left: Box::new(before),
                    op: BinaryOperator::And,
                    right: Box::new(merged.equal),
                },
                None => merged.equal,
            });
        }
        if needs_on
            && !by_position
            && let Some(condition) = condition
            && let Some(constraint) = find_constraint_mut(&mut join.join_operator)
        {
            *constraint = JoinConstraint::On(condition);
        }
        Some(())
    }

    /// Merges the column `name` of the right input of a join into that of the left input.
    fn merge_column(
        &mut self,
        name: &Ident,
        operator: &JoinOperator,
        sides: &JoinSides,
    ) -> Option<UsingCondition> {
        use JoinOperator as J;
        let right_at = self.find_owner(&sides.right, name)?;
        let right_table = &mut self.tables[right_at];
        let plain = qualify_column(&right_table.name, name);
        // In `a JOIN (b FULL JOIN c USING (k)) USING (k)`, the join in parentheses has already
        // merged `k`, so the outer join compares the merged value.
        let own = right_table.own.iter().position(|(own, _)| is_same_name(own, name));
        let right = own.map_or_else(|| plain.clone(), |at| right_table.own.remove(at).1);
        let mut needs_on = right != plain;
        right_table.merged.push(ObjectName::from(vec![name.clone()]));

        let left_at = self.find_owner(&sides.left, name)?;
        let left_table = &mut self.tables[left_at];
        let known = left_table.own.iter().position(|(own, _)| is_same_name(own, name));
        let plain = qualify_column(&left_table.name, name);
        let left = known.map_or_else(|| plain.clone(), |at| left_table.own[at].1.clone());
        needs_on |= left != plain;
        let equal = Expr::BinaryOp {
            left: Box::new(left.clone()),
            op: BinaryOperator::Eq,
            right: Box::new(right.clone()),
        };
        let merged = match operator {
            J::Right(_) | J::RightOuter(_) => right,
            J::FullOuter(_) => merge_values(left, right),
            _ => left,
        };
        match known {
            Some(at) => {
                left_table.own[at].1 = merged;
                // DataFusion cannot plan a further USING with a column of three tables, such as
                // `JOIN d USING (k)` after `a JOIN b USING (k) JOIN c USING (k)`. So this USING
                // becomes ON.
                needs_on |= self.by_conditions
                    && left_table.repeated.iter().any(|other| is_same_name(other, name));
                left_table.repeated.push(name.clone());
            }
            None => left_table.own.push((name.clone(), merged)),
        }
        Some(UsingCondition { equal, needs_on })
    }

    /// Returns the index of the table that has the column `name` of an input of a join, which
    /// consists of the tables `input`: the table that already merges `name`, else the only table
    /// with such a column. If there is none, the SELECT stays unchanged.
    fn find_owner(&self, input: &Range<usize>, name: &Ident) -> Option<usize> {
        let tables = &self.tables[input.clone()];
        let at = match tables.iter().position(|table| owns_column(table, name)) {
            Some(at) => at,
            None if tables.len() == 1 => 0,
            None => find_holder(tables, name, self.relations)?,
        };
        Some(input.start + at)
    }
}

/// Returns the index of the only table with a column. Returns `None` if no table or several tables
/// have it, or if the columns of a table are unknown.
fn find_holder(tables: &[MergedTable], name: &Ident, relations: &TableColumns) -> Option<usize> {
    let mut holder = None;
    for (at, table) in tables.iter().enumerate() {
        let Some(Ok(columns)) = relations.get(&table.text) else { return None };
        if columns.contains(&fold_name(name)) && holder.replace(at).is_some() {
            return None;
        }
    }
    holder
}

/// Returns the text of a table in the statement, without an alias that `add_table` has added.
fn find_written_text(factor: &TableFactor) -> String {
    if let TableFactor::Derived { alias: Some(alias), .. } = factor
        && alias.name.value.starts_with(SIDE)
    {
        let mut written = factor.clone();
        if let TableFactor::Derived { alias, .. } = &mut written {
            *alias = None;
        }
        return written.to_string();
    }
    factor.to_string()
}

/// In `unnest(..)` and LATERAL queries, replaces the unqualified names of merged columns of the
/// tables before them.
pub(super) fn replace_in_lateral(
    table: &mut TableFactor,
    earlier: &[MergedTable],
    columns: &FromColumns,
) {
    if matches!(table, TableFactor::Derived { lateral: true, .. } | TableFactor::UNNEST { .. }) {
        let names: Vec<_> = earlier.iter().flat_map(|known| known.own.iter().cloned()).collect();
        let _ = table.visit(&mut BareNames::new(&names, columns));
    }
}

/// Returns `coalesce(left, right)` without nested calls: `coalesce(a.k, b.k, c.k)` for
/// `coalesce(a.k, b.k)` and `c.k`. DataFusion's rules copy the first argument of each call, so the
/// size of nested calls would double with each join.
fn merge_values(left: Expr, right: Expr) -> Expr {
    let mut values = split_coalesce(left);
    values.extend(split_coalesce(right));
    call_function("coalesce", values)
}

/// Returns the arguments of a call of `coalesce`, and any other expression alone.
fn split_coalesce(value: Expr) -> Vec<Expr> {
    if let Expr::Function(call) = &value
        && to_plain_name(&call.name).as_deref() == Some("coalesce")
        && let FunctionArguments::List(list) = &call.args
        && let Some(args) = list_plain_arguments(&list.args)
    {
        return args;
    }
    vec![value]
}

pub(in crate::sql) fn build_coalesce<const N: usize>(args: [Expr; N]) -> Expr {
    call_function("coalesce", args.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_values_split_only_calls_of_coalesce() {
        let column = |name: &str| Expr::Identifier(Ident::new(name));
        let greatest = call_function("greatest", vec![column("a"), column("b")]);
        let merged = merge_values(greatest, merge_values(column("c"), column("d")));
        assert_eq!(merged.to_string(), "coalesce(greatest(a, b), c, d)");
    }
}
