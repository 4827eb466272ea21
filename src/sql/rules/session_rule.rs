//! An optimizer rule that Serrate adds to a session: its function and place, the reason for it and
//! the condition for its removal.

use datafusion::optimizer::ApplyOrder;

use super::function_rule::{AnalyzeFn, OptimizeAroundFn, OptimizeFn, RewriteAroundFn, RewriteFn};
use crate::sql::base::node_types::NodeType;
use crate::sql::base::plan_facts::PlanFact;

/// A rule of a session, with the data for its row of the table in `docs/internals/sql.md`.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) struct SessionRule {
    /// Name in EXPLAIN and in `SET serrate.disabled_rules`. For [`RuleStep::WithoutLogical`], it is
    /// the name of the removed rule of DataFusion. If the function wraps rules of DataFusion,
    /// EXPLAIN shows the names of these rules instead.
    pub(super) name: &'static str,
    pub(super) step: RuleStep,
    /// Wrong behaviour of a session without the rule.
    pub(super) without: &'static str,
    pub(super) upstream: UpstreamReport,
    pub(super) until: RemovalCondition,
}

/// The place of a rule among DataFusion's rules, and the function of the rule. A string is the name
/// of a rule of DataFusion: `AfterPhysical("join_selection", nodes, f)` runs `f` after this rule.
///
/// A rule of analysis runs only for plans that have one of its [`PlanFact`]s. All nodes and
/// expressions that the function may change, or for which it may return an error, must be of these
/// kinds. A physical rule runs only for plans that have a node of one of its types; an empty list
/// means all types. Builds with debug assertions check this for each plan for which a rule is
/// skipped.
///
/// `AroundLogical(names, f)` and `AroundPhysical(names, f)` replace each of the named rules by `f`,
/// which receives the rule and calls it. If several functions name one rule, each wraps the
/// function before it in the list.
pub(super) enum RuleStep {
    FirstOfAll(&'static [PlanFact], AnalyzeFn),
    BeforeCoercion(&'static [PlanFact], AnalyzeFn),
    AfterCoercion(&'static [PlanFact], AnalyzeFn),
    FirstLogical(ApplyOrder, RewriteFn),
    WithoutLogical,
    AroundLogical(&'static [&'static str], RewriteAroundFn),
    LastLogical(ApplyOrder, RewriteFn),
    FirstPhysical(&'static [NodeType], OptimizeFn),
    AfterPhysical(&'static str, &'static [NodeType], OptimizeFn),
    BeforePhysical(&'static str, &'static [NodeType], OptimizeFn),
    AroundPhysical(&'static [&'static str], OptimizeAroundFn),
    LastPhysical(&'static [NodeType], OptimizeFn),
}

/// Whether the bug that a rule works around is reported to the project that causes it.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum UpstreamReport {
    /// The issues and pull requests that describe the bug.
    Reported(&'static [UpstreamIssue]),
    /// No report of the bug was found.
    NotReported,
    /// The rule works around no bug: it speeds up queries, or adds a feature of Serrate.
    Ours,
}

/// The number of an issue or a pull request.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum UpstreamIssue {
    /// In `apache/datafusion`.
    DataFusion(u32),
    /// In `apache/arrow-rs`.
    Arrow(u32),
}

/// The condition under which a rule can be removed from Serrate.
#[cfg_attr(not(test), allow(dead_code, reason = "the documentation is made of it"))]
pub(super) enum RemovalCondition {
    /// The rule can be removed when the test with this name fails, because DataFusion has then
    /// fixed the bug.
    Fails(&'static str),
    /// The rule can be removed when the test with this name passes without the rule.
    Passes(&'static str),
    /// The rule is never removed: it speeds up queries. The setting `serrate.rule.NAME` switches it
    /// off.
    Speed,
    /// The rule is never removed: it is a feature that DataFusion does not have.
    Feature,
}
