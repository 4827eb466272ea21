//! Lists the optimizer rules that Serrate adds to a session, stage by stage.

use super::analysis_rules::ANALYSIS_RULES;
use super::logical_rules::LOGICAL_RULES;
use super::physical_rules::PHYSICAL_RULES;
use super::session_rule::SessionRule;

/// Returns all rules of a session in the order in which they run. `docs/internals/sql.md` contains
/// them as a table.
pub(super) fn list_rules() -> impl Iterator<Item = &'static SessionRule> {
    [ANALYSIS_RULES, LOGICAL_RULES, PHYSICAL_RULES].into_iter().flatten()
}
