//! Finds which kinds of nodes and expressions a logical plan has. A rule that concerns other kinds
//! is skipped: a search takes less time than a rewrite that changes nothing.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use arrow::datatypes::{DataType, Fields};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Distinct as DistinctNode, Expr, LogicalPlan, Operator, ScalarUDF,
};
use serrate_core::internal::holds_type;

use crate::functions::{StockFact, has_fact, may_return_times};
use crate::sql::base::expression_parts::for_each_part;
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
    /// A call of a scalar function that casts its argument: to a type that it names, from a string
    /// to a time, or to a coarser unit.
    CastCall,
    /// A call of a scalar function, such as `coalesce`, that returns one of its arguments.
    ChoiceCall,
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

    /// A column, literal or cast whose type is, or holds, a time, a duration or an interval, or a
    /// call that may return one although its arguments have none.
    Time,
}

use PlanFact::{
    Aggregate, AggregateCall, AnyPlan, Between, Binary, Case, Cast, CastCall, Change, ChoiceCall,
    Distinct, Extension, Function, InList, Join, LambdaCall, Like, Negative, Order, Query,
    Recursion, SelectNothing, SimilarTo, Sort, Sum, Text, Time, Truth, Union, Unnest, Values,
    Window, WindowCall, Xor,
};

/// A set of kinds, with one bit for each kind.
#[derive(Clone, Copy, Default)]
struct FactSet(u64);

impl FactSet {
    const ALL: Self = Self(u64::MAX);

    fn from_facts(facts: &[PlanFact]) -> Self {
        let mut set = Self::default();
        set.add_facts(facts);
        set
    }

    fn add_facts(&mut self, facts: &[PlanFact]) {
        for fact in facts {
            self.0 |= 1u64 << (*fact as u32);
        }
    }

    fn add_set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn shares_facts(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn has_member(self, fact: PlanFact) -> bool {
        self.shares_facts(Self::from_facts(&[fact]))
    }
}

/// The kinds of a plan.
struct KnownFacts {
    /// Keeps the plan from being changed at its address, and the address from being used for
    /// another plan: an `Arc` to which a `Weak` refers moves its value before it changes the value.
    plan: Weak<LogicalPlan>,
    facts: FactSet,
}

/// Maximum number of plans of [`KNOWN`].
const MOST_KNOWN: usize = 8;

thread_local! {
    /// The plans that [`recall_facts`] has searched last on this thread. Most rules of analysis
    /// return the plan that they receive, so the inputs of its topmost node need no new search.
    static KNOWN: RefCell<Vec<KnownFacts>> = const { RefCell::new(Vec::new()) };
}

/// Whether a plan, or a subquery in it, has one of the `wanted` kinds.
pub(in crate::sql) fn has_facts(plan: &LogicalPlan, wanted: &[PlanFact]) -> Result<bool> {
    if wanted.contains(&AnyPlan) {
        return Ok(true);
    }
    let wanted = FactSet::from_facts(wanted);
    let mut found = FactSet::default();
    add_node_facts(plan, wanted, &mut found)?;
    if found.shares_facts(wanted) {
        return Ok(true);
    }
    match list_shared_inputs(plan) {
        Some(inputs) => {
            for input in inputs {
                found.add_set(recall_facts(input)?);
            }
        }
        None => {
            plan.apply_children(|input| {
                found.add_set(collect_facts(input)?);
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
    }
    Ok(found.shares_facts(wanted))
}

/// Returns the inputs of a node, or `None` for kinds of nodes that are rarely the topmost.
fn list_shared_inputs(plan: &LogicalPlan) -> Option<Vec<&Arc<LogicalPlan>>> {
    Some(match plan {
        LogicalPlan::Aggregate(node) => vec![&node.input],
        LogicalPlan::Distinct(DistinctNode::All(input)) => vec![input],
        LogicalPlan::Filter(node) => vec![&node.input],
        LogicalPlan::Join(node) => vec![&node.left, &node.right],
        LogicalPlan::Limit(node) => vec![&node.input],
        LogicalPlan::Projection(node) => vec![&node.input],
        LogicalPlan::Sort(node) => vec![&node.input],
        LogicalPlan::SubqueryAlias(node) => vec![&node.input],
        LogicalPlan::Union(node) => node.inputs.iter().collect(),
        LogicalPlan::Window(node) => vec![&node.input],
        _ => return None,
    })
}

/// Returns the kinds of a plan that other plans may share. The plan is searched only if it is not
/// among the plans that were searched last.
fn recall_facts(plan: &Arc<LogicalPlan>) -> Result<FactSet> {
    let is_about = |known: &&KnownFacts| std::ptr::eq(known.plan.as_ptr(), Arc::as_ptr(plan));
    let known = KNOWN.with_borrow(|all| all.iter().find(is_about).map(|known| known.facts));
    if let Some(facts) = known {
        return Ok(facts);
    }
    let facts = collect_facts(plan)?;
    KNOWN.with_borrow_mut(|all| {
        if all.len() >= MOST_KNOWN {
            all.remove(0);
        }
        all.push(KnownFacts { plan: Arc::downgrade(plan), facts });
    });
    Ok(facts)
}

fn collect_facts(plan: &LogicalPlan) -> Result<FactSet> {
    let mut found = FactSet::default();
    plan.apply(|node| {
        add_node_facts(node, FactSet::ALL, &mut found)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Adds the kinds of a node and its expressions, also those of subqueries in them, but not those of
/// its inputs. Kinds that take longer to find are only found if they are `wanted`.
fn add_node_facts(node: &LogicalPlan, wanted: FactSet, found: &mut FactSet) -> Result<()> {
    found.add_facts(find_node_fact(node).as_slice());
    if wanted.has_member(Time) && has_time_columns(node) {
        found.add_facts(&[Time]);
    }
    for_each_part(node, |part| {
        found.add_facts(list_part_facts(part));
        if let Expr::ScalarFunction(call) = part {
            add_call_facts(&call.func, wanted, found);
        }
        if let Some(query) = find_query(part) {
            found.add_set(recall_facts(&query.subquery)?);
        }
        Ok(())
    })
}

fn add_call_facts(function: &ScalarUDF, wanted: FactSet, found: &mut FactSet) {
    let is = |fact: StockFact| has_fact(function.name(), fact);
    if wanted.has_member(Time) && may_return_times(function) {
        found.add_facts(&[Time]);
    }
    if wanted.has_member(CastCall)
        && (is(StockFact::CastsToNamedType)
            || is(StockFact::ReadsTime)
            || is(StockFact::CoarsensTimes))
    {
        found.add_facts(&[CastCall]);
    }
    if wanted.has_member(ChoiceCall) && is(StockFact::Chooses) {
        found.add_facts(&[ChoiceCall]);
    }
}

fn find_node_fact(node: &LogicalPlan) -> Option<PlanFact> {
    match node {
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
    }
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

/// Whether an expression, without its parts, is of one of the `wanted` kinds, which must not be
/// [`Time`], [`CastCall`] or [`ChoiceCall`].
pub(in crate::sql) fn has_part_facts(part: &Expr, wanted: &[PlanFact]) -> bool {
    list_part_facts(part).iter().any(|fact| wanted.contains(fact))
}

/// Returns the kinds of an expression without its parts.
fn list_part_facts(part: &Expr) -> &'static [PlanFact] {
    match part {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PlanFact; 34] = [
        Aggregate,
        AggregateCall,
        AnyPlan,
        Between,
        Binary,
        Case,
        Cast,
        CastCall,
        Change,
        ChoiceCall,
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
            ("SELECT ragged_sum(x) FROM u", &[Function]),
            (
                "SELECT a FROM u WHERE to_date('2020-01-01') IS NULL",
                &[CastCall, Function, Text, Time],
            ),
            (
                "SELECT ragged_sum(x) FROM u WHERE nvl(a, 1) = 2",
                &[Binary, ChoiceCall, Function, Time],
            ),
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

    #[tokio::test]
    async fn facts_change_with_inputs() {
        let ctx = crate::sql::session();
        let text = "SELECT a FROM (SELECT unnest([1, 2]) AS a) AS t";
        let mut plan = crate::sql::sql(&ctx, text).await.unwrap().logical_plan().clone();
        let text = "SELECT DISTINCT 1 AS a";
        let other = crate::sql::sql(&ctx, text).await.unwrap().logical_plan().clone();
        for _ in 0..3 {
            let LogicalPlan::Projection(projection) = &mut plan else {
                panic!("{plan} is no projection")
            };
            let before = LogicalPlan::clone(&projection.input);
            *Arc::make_mut(&mut projection.input) = other.clone();
            for _ in 0..2 {
                assert!(has_facts(&plan, &[Distinct]).unwrap());
                assert!(!has_facts(&plan, &[Unnest]).unwrap());
            }
            let LogicalPlan::Projection(projection) = &mut plan else { unreachable!() };
            *Arc::make_mut(&mut projection.input) = before;
            for _ in 0..2 {
                assert!(!has_facts(&plan, &[Distinct]).unwrap());
                assert!(has_facts(&plan, &[Unnest]).unwrap());
            }
        }
    }
}
