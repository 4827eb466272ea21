//! Finds the ON, USING or NATURAL of a join in the syntax tree.

use datafusion::logical_expr::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableFactor, TableWithJoins,
};

/// Whether a FROM contains USING, also in joins in parentheses.
pub(in crate::sql) fn has_using(from: &TableWithJoins) -> bool {
    let within = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => has_using(table_with_joins),
        _ => false,
    };
    let of_join =
        |join: &Join| !list_using_columns(&join.join_operator).is_empty() || within(&join.relation);
    within(&from.relation) || from.joins.iter().any(of_join)
}

/// Whether a join has USING or is NATURAL.
pub(in crate::sql) fn is_merging(join: &Join) -> bool {
    let constraint = join_constraint(&join.join_operator);
    matches!(constraint, Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
}

pub(in crate::sql) fn join_constraint(join: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match join {
        J::Join(c)
        | J::Inner(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c)
        | J::Semi(c)
        | J::LeftSemi(c)
        | J::RightSemi(c)
        | J::Anti(c)
        | J::LeftAnti(c)
        | J::RightAnti(c)
        | J::StraightJoin(c) => Some(c),
        _ => None,
    }
}

pub(in crate::sql) fn find_constraint_mut(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator as J;
    match join {
        J::Join(c)
        | J::Inner(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c) => Some(c),
        _ => None,
    }
}

pub(in crate::sql) fn list_using_columns(join: &JoinOperator) -> &[ObjectName] {
    match join_constraint(join) {
        Some(JoinConstraint::Using(columns)) => columns,
        _ => &[],
    }
}
