//! Finds which kinds of nodes and expressions a logical plan has. A rule that concerns other kinds
//! is skipped: a search takes less time than a rewrite that changes nothing.

use arrow::datatypes::{DataType, Fields};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use serrate_core::internal::holds_type;

use crate::sql::base::subquery_parts::find_query;

/// A kind of plans, nodes, expressions or types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sql) enum PlanFact {
    /// Any plan.
    AnyPlan,

    // Nodes.
    Aggregate,
    /// INSERT, DELETE or UPDATE.
    Change,
    /// DISTINCT and DISTINCT ON.
    Distinct,
    Extension,
    Join,
    Recursion,
    /// A projection without columns, to which DataFusion plans `FROM t` without SELECT.
    SelectNothing,
    Sort,
    Union,
    Unnest,
    Values,
    Window,

    // Expressions.
    AggregateCall,
    Between,
    /// A binary operator.
    Binary,
    Case,
    /// CAST and TRY_CAST.
    Cast,
    /// A call of a scalar function.
    Function,
    InList,
    /// A call of a higher-order function.
    LambdaCall,
    Like,
    Negative,
    /// `<`, `<=`, `>` or `>=`.
    Order,
    /// A scalar subquery, EXISTS, IN, ANY or ALL.
    Query,
    SimilarTo,
    /// `+` or `-`.
    Sum,
    /// A literal string, or a literal list or struct, which may have strings.
    Text,
    /// IS TRUE, IS FALSE and their negations.
    Truth,
    WindowCall,
    /// `^`.
    Xor,

    /// A column, literal or cast whose type is, or holds, a time, a duration or an interval.
    Time,
}

use PlanFact::{
    Aggregate, AggregateCall, AnyPlan, Between, Binary, Case, Cast, Change, Distinct, Extension,
    Function, InList, Join, LambdaCall, Like, Negative, Order, Query, Recursion, SelectNothing,
    SimilarTo, Sort, Sum, Text, Time, Truth, Union, Unnest, Values, Window, WindowCall, Xor,
};

/// Whether a plan, or a subquery in it, has one of the `wanted` kinds.
pub(in crate::sql) fn has_facts(plan: &LogicalPlan, wanted: &[PlanFact]) -> Result<bool> {
    if wanted.contains(&AnyPlan) {
        return Ok(true);
    }
    let continue_unless = |found: bool| match found {
        true => TreeNodeRecursion::Stop,
        false => TreeNodeRecursion::Continue,
    };
    let mut found = false;
    plan.apply(|node| {
        found = has_node_facts(node, wanted);
        if !found {
            node.apply_expressions(|e| {
                e.apply(|part| {
                    found = has_part_facts(part, wanted)
                        || match find_query(part) {
                            Some(query) => has_facts(&query.subquery, wanted)?,
                            None => false,
                        };
                    Ok(continue_unless(found))
                })
            })?;
        }
        Ok(continue_unless(found))
    })?;
    Ok(found)
}

fn has_node_facts(node: &LogicalPlan, wanted: &[PlanFact]) -> bool {
    let fact = match node {
        LogicalPlan::Aggregate(_) => Some(Aggregate),
        LogicalPlan::Distinct(_) => Some(Distinct),
        LogicalPlan::Dml(_) => Some(Change),
        LogicalPlan::Extension(_) => Some(Extension),
        LogicalPlan::Join(_) => Some(Join),
        LogicalPlan::Projection(projection) if projection.expr.is_empty() => Some(SelectNothing),
        LogicalPlan::RecursiveQuery(_) => Some(Recursion),
        LogicalPlan::Sort(_) => Some(Sort),
        LogicalPlan::Union(_) => Some(Union),
        LogicalPlan::Unnest(_) => Some(Unnest),
        LogicalPlan::Values(_) => Some(Values),
        LogicalPlan::Window(_) => Some(Window),
        _ => None,
    };
    fact.is_some_and(|fact| wanted.contains(&fact))
        || wanted.contains(&Time) && has_time_columns(node)
}

fn has_time_columns(node: &LogicalPlan) -> bool {
    let hold_time = |fields: &Fields| fields.iter().any(|field| is_time(field.data_type()));
    hold_time(node.schema().fields())
        // The conditions of a scan may use columns that the scan does not return.
        || matches!(node, LogicalPlan::TableScan(scan) if hold_time(scan.source.schema().fields()))
}

/// Whether a type is, or holds, a time, a duration or an interval.
pub(in crate::sql) fn is_time(t: &DataType) -> bool {
    holds_type(t, DataType::is_temporal)
}

/// Whether an expression, without its parts, is of one of the `wanted` kinds.
pub(in crate::sql) fn has_part_facts(part: &Expr, wanted: &[PlanFact]) -> bool {
    let facts: &[PlanFact] = match part {
        Expr::AggregateFunction(_) => &[AggregateCall],
        Expr::Between(_) => &[Between],
        Expr::BinaryExpr(BinaryExpr { op, .. }) => match op {
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => &[Binary, Order],
            Operator::Plus | Operator::Minus => &[Binary, Sum],
            Operator::BitwiseXor => &[Binary, Xor],
            _ => &[Binary],
        },
        Expr::Case(_) => &[Case],
        Expr::Cast(cast) if is_time(cast.field.data_type()) => &[Cast, Time],
        Expr::TryCast(cast) if is_time(cast.field.data_type()) => &[Cast, Time],
        Expr::Cast(_) | Expr::TryCast(_) => &[Cast],
        Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::ScalarSubquery(_) => &[Query],
        Expr::HigherOrderFunction(_) => &[LambdaCall],
        Expr::InList(_) => &[InList],
        Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsNotTrue(_) | Expr::IsNotFalse(_) => &[Truth],
        Expr::Like(_) => &[Like],
        Expr::Literal(value, _) => {
            let t = value.data_type();
            match (t.is_string() || t.is_nested(), is_time(&t)) {
                (true, true) => &[Text, Time],
                (true, false) => &[Text],
                (false, true) => &[Time],
                (false, false) => &[],
            }
        }
        Expr::Negative(_) => &[Negative],
        Expr::OuterReferenceColumn(field, _) if is_time(field.data_type()) => &[Time],
        Expr::ScalarFunction(_) => &[Function],
        Expr::SimilarTo(_) => &[SimilarTo],
        Expr::WindowFunction(_) => &[WindowCall],
        _ => &[],
    };
    facts.iter().any(|fact| wanted.contains(fact))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PlanFact; 32] = [
        Aggregate,
        AggregateCall,
        AnyPlan,
        Between,
        Binary,
        Case,
        Cast,
        Change,
        Distinct,
        Extension,
        Function,
        InList,
        Join,
        LambdaCall,
        Like,
        Negative,
        Order,
        Query,
        Recursion,
        SelectNothing,
        SimilarTo,
        Sort,
        Sum,
        Text,
        Time,
        Truth,
        Union,
        Unnest,
        Values,
        Window,
        WindowCall,
        Xor,
    ];

    #[tokio::test]
    async fn facts_are_those_of_the_plan() {
        let ctx = crate::sql::session();
        let create = "CREATE TABLE t AS SELECT 1 AS a, [1, 2] AS x, DATE '2020-01-01' AS d";
        crate::sql::sql(&ctx, create).await.unwrap().collect().await.unwrap();
        let create = "CREATE TABLE u AS SELECT 1 AS a, [1.5] AS x";
        crate::sql::sql(&ctx, create).await.unwrap().collect().await.unwrap();
        let cases: &[(&str, &[PlanFact])] = &[
            ("SELECT 1", &[]),
            ("SELECT a, x FROM u WHERE a = 5", &[Binary]),
            ("SELECT a FROM t", &[Time]),
            ("SELECT a FROM u WHERE a < 5", &[Binary, Order]),
            ("SELECT a + 1 FROM u", &[Binary, Sum]),
            ("SELECT -a FROM u", &[Negative]),
            ("SELECT 'a'", &[Text]),
            ("SELECT a IN (1, 2) FROM u", &[InList]),
            ("SELECT a BETWEEN 1 AND 2 FROM u", &[Between]),
            ("SELECT a FROM u ORDER BY a", &[Sort]),
            ("SELECT DISTINCT a FROM u", &[Distinct]),
            ("SELECT sum(a) FROM u", &[Aggregate, AggregateCall]),
            ("SELECT a FROM u WHERE EXISTS (SELECT 1 FROM t)", &[Query, Time]),
            ("SELECT u.a FROM u CROSS JOIN u AS v", &[Join]),
            ("SELECT a FROM u UNION ALL SELECT a FROM u", &[Union]),
            ("SELECT CASE WHEN a = 1 THEN a END FROM u", &[Binary, Case]),
        ];
        for (text, expected) in cases {
            let plan = crate::sql::sql(&ctx, text).await.unwrap().logical_plan().clone();
            for fact in ALL {
                let is_expected = fact == AnyPlan || expected.contains(&fact);
                assert_eq!(has_facts(&plan, &[fact]).unwrap(), is_expected, "{text}: {fact:?}");
            }
        }
    }
}
