//! Adds the optimizer rules of a session, the ordered list `rule_list::RULES`, to those of DataFusion.
//!
//! Rules that work around a bug of DataFusion, and rules that keep source order, always run. Rules that
//! speed up queries are [`Switched`]: each has a setting `serrate.rule.NAME` and does not change results.

mod rule_list;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::config::SerrateOptions;
use crate::sql::workarounds::compared_casts::ComparedCasts;
use crate::sql::workarounds::conditions::PushDownFree;
use crate::sql::workarounds::failing_rules::FailingRules;
use crate::sql::workarounds::filtered_aggregates::FilteredAggregates;
use crate::sql::workarounds::guarded_rules::GuardedRule;
use crate::sql::workarounds::in_lists::InLists;
use crate::sql::workarounds::lone_branches::LoneBranches;
use crate::sql::workarounds::null_equal_joins::NullEqualJoins;
use crate::sql::workarounds::opaque_limits::OpaqueLimits;
use crate::sql::workarounds::repeated_orders::RepeatedOrders;
use crate::sql::workarounds::sort_keys::SortKeys;
use crate::sql::workarounds::whole_windows::WholeWindows;
use rule_list::{RULES, RuleStep};

pub(in crate::sql) type TypeRule = Arc<dyn AnalyzerRule + Send + Sync>;
pub(in crate::sql) type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
pub(in crate::sql) type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Defines the methods `name` and `apply_order` of a logical rule. If the argument is `stock`, they
/// return what DataFusion's rule in the field `stock` returns, otherwise the given name and order.
macro_rules! logical_rule {
    (stock) => {
        fn name(&self) -> &str {
            self.stock.name()
        }

        fn apply_order(&self) -> Option<datafusion::optimizer::ApplyOrder> {
            self.stock.apply_order()
        }
    };
    ($name:literal, $order:ident) => {
        fn name(&self) -> &str {
            $name
        }

        fn apply_order(&self) -> Option<datafusion::optimizer::ApplyOrder> {
            Some(datafusion::optimizer::ApplyOrder::$order)
        }
    };
}

pub(in crate::sql) use logical_rule;

/// Defines the constructor of a logical rule that wraps the rules of DataFusion with the given names.
macro_rules! wrap_rule {
    ($names:pat) => {
        pub(in crate::sql) fn wrap_rule(
            rule: $crate::sql::rules::LogicalRule,
        ) -> $crate::sql::rules::LogicalRule {
            match rule.name() {
                $names => std::sync::Arc::new(Self { stock: rule }),
                _ => rule,
            }
        }
    };
}

pub(in crate::sql) use wrap_rule;

pub(in crate::sql) fn list_rules_before_coercion() -> impl Iterator<Item = TypeRule> {
    RULES.iter().filter_map(|rule| match rule.step {
        RuleStep::BeforeCoercion(make) => Some(make()),
        _ => None,
    })
}

/// Returns a plan whose expressions have the types in which they will be evaluated.
pub(in crate::sql) fn coerce_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let config = ConfigOptions::default();
    let coerced =
        list_rules_before_coercion().try_fold(plan, |plan, rule| rule.analyze(plan, &config))?;
    TypeCoercion::new().analyze(coerced, &config)
}

pub(in crate::sql) fn add_analyzer_rules(rules: &mut Vec<TypeRule>) {
    let first = RULES.iter().filter_map(|rule| match rule.step {
        RuleStep::FirstOfAll(make) => Some(make()),
        _ => None,
    });
    let first: Vec<TypeRule> = first.collect();
    // DataFusion finds the argument of `grouping(x)` among the keys before type coercion, so the
    // rules that change keys run after that.
    let coercion = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(0);
    rules.splice(coercion..coercion, list_rules_before_coercion());
    rules.splice(0..0, first);
}

pub(in crate::sql) fn list_last_analyzer_rules() -> impl Iterator<Item = TypeRule> {
    RULES.iter().filter_map(|rule| match rule.step {
        RuleStep::AfterCoercion(make) => Some(make()),
        _ => None,
    })
}

/// Inserts logical rules before those of DataFusion and removes rules that make valid statements
/// fail. Also wraps rules that would evaluate a condition for more rows than the query does.
pub(in crate::sql) fn change_logical_rules(rules: &mut Vec<LogicalRule>) {
    let refused = |name: &str| {
        RULES.iter().any(|rule| matches!(rule.step, RuleStep::WithoutLogical(of) if of == name))
    };
    rules.retain(|rule| !refused(rule.name()));
    for rule in rules.iter_mut() {
        let guarded = PushDownFree::wrap_rule(ComparedCasts::wrap_rule(Arc::clone(rule)));
        let guarded = WholeWindows::wrap_rule(InLists::wrap_rule(guarded));
        let guarded = RepeatedOrders::wrap_rule(SortKeys::wrap_rule(guarded));
        let guarded = LoneBranches::wrap_rule(guarded);
        *rule = FailingRules::wrap_rule(NullEqualJoins::wrap_rule(guarded));
    }
    let first: Vec<LogicalRule> = RULES
        .iter()
        .filter_map(|rule| match rule.step {
            RuleStep::FirstLogical(make) => Some(make()),
            _ => None,
        })
        .collect();
    rules.splice(0..0, first);
}

pub(in crate::sql) fn list_last_logical_rules() -> impl Iterator<Item = LogicalRule> {
    RULES.iter().filter_map(|rule| match rule.step {
        RuleStep::LastLogical(make) => Some(make()),
        _ => None,
    })
}

/// Inserts physical rules among those of DataFusion. Passes each rule through [`GuardedRule`], so that it
/// does not confuse columns, through [`FilteredAggregates`], so that it does not confuse aggregates, and
/// through [`OpaqueLimits`], so that it moves no sort or limit to a wrong position.
pub(in crate::sql) fn add_physical_rules(rules: &mut Vec<PhysicalRule>) {
    let mut first: Vec<PhysicalRule> = Vec::new();
    for rule in RULES {
        let place =
            |rules: &[PhysicalRule], name: &str| rules.iter().position(|r| r.name() == name);
        match rule.step {
            RuleStep::FirstPhysical(make) => first.push(make()),
            RuleStep::AfterPhysical(name, make) => {
                let at = place(rules, name).map_or(rules.len(), |at| at + 1);
                rules.insert(at, make());
            }
            RuleStep::BeforePhysical(name, make) => {
                let at = place(rules, name).unwrap_or(rules.len());
                rules.insert(at, make());
            }
            _ => {}
        }
    }
    rules.splice(0..0, first);
    for rule in rules.iter_mut() {
        let guarded = FilteredAggregates::guard_rule(GuardedRule::guard_rule(Arc::clone(rule)));
        *rule = OpaqueLimits::guard_rule(guarded);
    }
}

pub(in crate::sql) fn list_last_physical_rules() -> impl Iterator<Item = PhysicalRule> {
    RULES.iter().filter_map(|rule| match rule.step {
        RuleStep::LastPhysical(make) => Some(make()),
        _ => None,
    })
}

/// Wraps a rule `serrate_NAME` that the setting `serrate.rule.NAME` can switch off.
#[derive(Debug)]
struct Switched<R>(R);

fn is_on(rule: &str, config: &ConfigOptions) -> bool {
    let name = rule.strip_prefix("serrate_").unwrap_or(rule);
    !SerrateOptions::of(config).rules_off.contains(name)
}

impl<R: OptimizerRule> OptimizerRule for Switched<R> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match is_on(self.name(), &config.options()) {
            true => self.0.rewrite(plan, config),
            false => Ok(Transformed::no(plan)),
        }
    }
}

impl<R: PhysicalOptimizerRule> PhysicalOptimizerRule for Switched<R> {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match is_on(self.name(), config) {
            true => self.0.optimize(plan, config),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use datafusion::optimizer::Optimizer;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::rule_list::{RemovalCondition, SessionRule, Upstream, UpstreamIssue};
    use super::*;
    use crate::config;

    impl SessionRule {
        fn names(&self) -> (String, String) {
            match self.step {
                RuleStep::FirstOfAll(make)
                | RuleStep::BeforeCoercion(make)
                | RuleStep::AfterCoercion(make) => {
                    (make().name().to_owned(), format!("{:?}", make()))
                }
                RuleStep::FirstLogical(make) | RuleStep::LastLogical(make) => {
                    (make().name().to_owned(), format!("{:?}", make()))
                }
                RuleStep::FirstPhysical(make)
                | RuleStep::AfterPhysical(_, make)
                | RuleStep::BeforePhysical(_, make)
                | RuleStep::LastPhysical(make) => {
                    (make().name().to_owned(), format!("{:?}", make()))
                }
                RuleStep::WithoutLogical(name)
                | RuleStep::AroundLogical(name)
                | RuleStep::AroundPhysical(name) => (name.to_owned(), String::new()),
            }
        }

        fn describe_place(&self) -> String {
            match self.step {
                RuleStep::FirstOfAll(_) => "analysis, first".into(),
                RuleStep::BeforeCoercion(_) => "analysis, before type coercion".into(),
                RuleStep::AfterCoercion(_) => "analysis, last".into(),
                RuleStep::FirstLogical(_) => "logical, first".into(),
                RuleStep::WithoutLogical(_) => "logical, removed".into(),
                RuleStep::AroundLogical(_) => "logical, around each".into(),
                RuleStep::LastLogical(_) => "logical, last".into(),
                RuleStep::FirstPhysical(_) => "physical, first".into(),
                RuleStep::AfterPhysical(name, _) => format!("physical, after `{name}`"),
                RuleStep::BeforePhysical(name, _) => format!("physical, before `{name}`"),
                RuleStep::AroundPhysical(_) => "physical, around each".into(),
                RuleStep::LastPhysical(_) => "physical, last".into(),
            }
        }
    }

    /// A wrong name would go unnoticed: `add_physical_rules` then appends the new rule at the end.
    #[test]
    fn rules_refer_to_rules_of_datafusion() {
        let names = |rules: Vec<String>| rules.into_iter().collect::<BTreeSet<String>>();
        let physical = PhysicalOptimizer::new().rules;
        let physical = names(physical.iter().map(|rule| rule.name().to_owned()).collect());
        let logical = Optimizer::new().rules;
        let logical = names(logical.iter().map(|rule| rule.name().to_owned()).collect());
        for rule in RULES {
            match rule.step {
                RuleStep::AfterPhysical(name, _) | RuleStep::BeforePhysical(name, _) => {
                    let is_ours = RULES.iter().any(|other| other.names().0 == name);
                    assert!(is_ours || physical.contains(name), "{name}: {physical:?}");
                }
                RuleStep::WithoutLogical(name) => {
                    assert!(logical.contains(name), "{name}: {logical:?}")
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_switched_rule_has_a_setting() {
        let mut found = BTreeSet::new();
        for rule in RULES {
            let (name, debug) = rule.names();
            let switched = debug.starts_with("Switched");
            assert_eq!(switched, matches!(rule.until, RemovalCondition::Speed), "{name}");
            if switched {
                found.insert(name.replace("serrate_", ""));
            }
        }
        let known: BTreeSet<String> =
            config::RULES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, known);
    }

    #[test]
    fn every_rule_says_whether_its_bug_is_reported() {
        for rule in RULES {
            let (name, _) = rule.names();
            match rule.upstream {
                Upstream::Reported(issues) => assert!(!issues.is_empty(), "{name}"),
                Upstream::NotReported => {
                    assert!(!matches!(rule.until, RemovalCondition::Speed), "{name}");
                }
                // A test can end only a rule that works around a bug.
                Upstream::Ours => assert!(
                    matches!(rule.until, RemovalCondition::Speed | RemovalCondition::Feature),
                    "{name}"
                ),
            }
        }
    }

    const MARKS: [&str; 2] = ["<!-- rules -->\n", "<!-- end of rules -->\n"];

    /// Returns a link to an issue or a pull request: GitHub redirects from one address to the other.
    fn link_issue(issue: &UpstreamIssue) -> String {
        match issue {
            UpstreamIssue::DataFusion(n) => {
                format!("[{n}](https://github.com/apache/datafusion/issues/{n})")
            }
            UpstreamIssue::Arrow(n) => {
                format!("[arrow-rs {n}](https://github.com/apache/arrow-rs/issues/{n})")
            }
        }
    }

    fn write_table() -> String {
        let mut table = String::from(
            "\n| rule | runs | behaviour without it | reports | obsolete |\n|---|---|---|---|---|\n",
        );
        for rule in RULES {
            let (name, _) = rule.names();
            let reports = match rule.upstream {
                Upstream::Reported(issues) => {
                    issues.iter().map(link_issue).collect::<Vec<_>>().join(", ")
                }
                Upstream::NotReported => "none found".into(),
                Upstream::Ours => "ours".into(),
            };
            let until = match rule.until {
                RemovalCondition::Fails(test) => format!("when `{test}` fails"),
                RemovalCondition::Passes(test) => format!("when `{test}` passes without it"),
                RemovalCondition::Speed => {
                    format!("never; `serrate.rule.{}`", name.replace("serrate_", ""))
                }
                RemovalCondition::Feature => "never".into(),
            };
            let (place, without) = (rule.describe_place(), rule.without);
            let _ = writeln!(table, "| `{name}` | {place} | {without} | {reports} | {until} |");
        }
        table.push('\n');
        table
    }

    #[test]
    fn the_documentation_has_every_rule() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/sql.md");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(MARKS[0]).unwrap();
        let (now, after) = rest.split_once(MARKS[1]).unwrap();
        let table = write_table();
        if std::env::var_os("SERRATE_BLESS").is_some() {
            let [start, end] = MARKS;
            fs::write(&path, format!("{before}{start}{table}{end}{after}")).unwrap();
        } else {
            assert!(
                now == table,
                "docs/internals/sql.md: SERRATE_BLESS=1 cargo test writes\n{table}"
            );
        }
    }

    #[test]
    fn tests_that_rules_name_exist() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql")];
        let mut sources = String::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => sources += &fs::read_to_string(path).unwrap(),
                }
            }
        }
        for rule in RULES {
            if let RemovalCondition::Fails(test) | RemovalCondition::Passes(test) = rule.until {
                assert!(sources.contains(&format!("async fn {test}(")), "there is no test {test}");
            }
        }
    }
}
