//! Adds the optimizer rules of a session, which `rule_list` lists in order, to those of DataFusion.
//!
//! A rule is a function in the list. Some of these functions wrap rules of DataFusion. Rules that
//! only speed up queries ([`RemovalCondition::Speed`]) each have a setting `serrate.rule.NAME`, and
//! do not change results. The setting `serrate.disabled_rules` switches off any rule but those of
//! [`PROTECTED`]; answers may be wrong without a rule that works around a bug of DataFusion.

mod analysis_rules;
mod function_rule;
mod logical_rules;
mod physical_rules;
mod rule_list;
mod session_rule;
mod skipped_rules;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::config_err;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

use function_rule::{
    AnalysisRule, FunctionRule, LogicalRule, PhysicalRule, RemovedRule, SkippableRule, WrappedRule,
};
use rule_list::list_rules;
use session_rule::{RemovalCondition, RuleStep, SessionRule};
use skipped_rules::{SKIPPED_ANALYSIS, SKIPPED_LOGICAL, SKIPPED_PHYSICAL};

/// Rules that no setting switches off, each with what would happen without it.
const PROTECTED: [(&str, &str); 4] = [
    ("serrate_plain_changes", "DELETE and UPDATE with a subquery in WHERE change every row"),
    ("serrate_yielding_joins", "long joins cannot be cancelled"),
    ("serrate_deep_stacks", "deep expressions overflow the stack, which ends the process"),
    ("serrate_named_files", "a damaged file ends the process"),
];

/// Returns the name of the rule `name`, which may be in upper or lower case. Returns an error if
/// there is no such rule, or if `SET serrate.disabled_rules` cannot switch it off.
pub(in crate::sql) fn find_rule(name: &str) -> Result<&'static str> {
    let Some(rule) = list_rules().find(|rule| rule.name.eq_ignore_ascii_case(name)) else {
        let part = name.to_ascii_lowercase();
        let names = list_rules().map(|rule| rule.name);
        let similar: BTreeSet<&str> = names.filter(|known| known.contains(&part)).collect();
        let similar = match similar.is_empty() {
            true => String::new(),
            false => format!("; did you mean {}?", Vec::from_iter(similar).join(" or ")),
        };
        return config_err!(
            "serrate.disabled_rules: there is no rule {name}{similar}; docs/internals/sql.md lists all rules"
        );
    };
    match PROTECTED.iter().find(|(protected, _)| *protected == rule.name) {
        Some((name, effect)) => config_err!(
            "serrate.disabled_rules: {name} cannot be disabled, because without it {effect}; remove it from the setting"
        ),
        None => Ok(rule.name),
    }
}

/// Converts a rule of [`list_rules`] to a rule that DataFusion can run, and that calls `function`.
fn make_rule<F>(rule: &SessionRule, function: F) -> Arc<FunctionRule<F>> {
    let is_switched = matches!(rule.until, RemovalCondition::Speed);
    Arc::new(FunctionRule { name: rule.name, is_switched, function })
}

fn list_rules_before_coercion() -> impl Iterator<Item = AnalysisRule> {
    list_rules().filter_map(|rule| match rule.step {
        RuleStep::BeforeCoercion(facts, analyze) => {
            Some(make_rule(rule, (facts, analyze)) as AnalysisRule)
        }
        _ => None,
    })
}

/// Returns a plan whose expressions have the types in which they will be evaluated. `config` has
/// the rules that the session disables.
pub(in crate::sql) fn coerce_types(
    plan: LogicalPlan,
    config: &ConfigOptions,
) -> Result<LogicalPlan> {
    let coerced =
        list_rules_before_coercion().try_fold(plan, |plan, rule| rule.analyze(plan, config))?;
    // Type coercion gets default settings, because the setting `expand_views_at_output` of a
    // session must only change the types of columns at the top of a statement.
    TypeCoercion::new().analyze(coerced, &ConfigOptions::default())
}

pub(in crate::sql) fn add_analyzer_rules(rules: &mut Vec<AnalysisRule>) {
    let first = list_rules().filter_map(|rule| match rule.step {
        RuleStep::FirstOfAll(facts, analyze) => {
            Some(make_rule(rule, (facts, analyze)) as AnalysisRule)
        }
        _ => None,
    });
    let first: Vec<AnalysisRule> = first.collect();
    // Before type coercion, DataFusion resolves the argument of `grouping(x)` to one of the keys of
    // GROUP BY. Rules that change keys must run after this resolution, so they are inserted
    // directly before type coercion.
    let coercion = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(0);
    rules.splice(coercion..coercion, list_rules_before_coercion());
    rules.splice(0..0, first);
    for (name, concerns) in SKIPPED_ANALYSIS {
        for rule in rules.iter_mut().filter(|rule| rule.name() == *name) {
            *rule = Arc::new(SkippableRule { stock: Arc::clone(rule), concerns: *concerns });
        }
    }
}

pub(in crate::sql) fn list_last_analyzer_rules() -> impl Iterator<Item = AnalysisRule> {
    list_rules().filter_map(|rule| match rule.step {
        RuleStep::AfterCoercion(facts, analyze) => {
            Some(make_rule(rule, (facts, analyze)) as AnalysisRule)
        }
        _ => None,
    })
}

/// Inserts logical rules before those of DataFusion and removes rules that make valid statements
/// fail. Also wraps rules that would evaluate a condition for more rows than the query does, and
/// rules that need not run for each plan.
pub(in crate::sql) fn change_logical_rules(rules: &mut Vec<LogicalRule>) {
    for removed in list_rules().filter(|rule| matches!(rule.step, RuleStep::WithoutLogical)) {
        for rule in rules.iter_mut().filter(|rule| rule.name() == removed.name) {
            *rule = Arc::new(RemovedRule { stock: Arc::clone(rule) });
        }
    }
    for wrapper in list_rules() {
        let RuleStep::AroundLogical(stock, function) = wrapper.step else { continue };
        for rule in rules.iter_mut().filter(|rule| stock.contains(&rule.name())) {
            *rule = Arc::new(WrappedRule { name: wrapper.name, stock: Arc::clone(rule), function });
        }
    }
    for (name, concerns) in SKIPPED_LOGICAL {
        for rule in rules.iter_mut().filter(|rule| rule.name() == *name) {
            *rule = Arc::new(SkippableRule { stock: Arc::clone(rule), concerns: *concerns });
        }
    }
    let first: Vec<LogicalRule> = list_rules()
        .filter_map(|rule| match rule.step {
            RuleStep::FirstLogical(order, rewrite) => {
                Some(make_rule(rule, (order, rewrite)) as LogicalRule)
            }
            _ => None,
        })
        .collect();
    rules.splice(0..0, first);
}

pub(in crate::sql) fn list_last_logical_rules() -> impl Iterator<Item = LogicalRule> {
    list_rules().filter_map(|rule| match rule.step {
        RuleStep::LastLogical(order, rewrite) => {
            Some(make_rule(rule, (order, rewrite)) as LogicalRule)
        }
        _ => None,
    })
}

/// Inserts physical rules among those of DataFusion. Also wraps rules that would confuse columns or
/// aggregates, or move sorts and limits to wrong positions.
pub(in crate::sql) fn add_physical_rules(rules: &mut Vec<PhysicalRule>) {
    let mut first: Vec<PhysicalRule> = Vec::new();
    for rule in list_rules() {
        let place =
            |rules: &[PhysicalRule], name: &str| rules.iter().position(|r| r.name() == name);
        match rule.step {
            RuleStep::FirstPhysical(nodes, optimize) => {
                first.push(make_rule(rule, (nodes, optimize)));
            }
            RuleStep::AfterPhysical(name, nodes, optimize) => {
                let at = place(rules, name).map_or(rules.len(), |at| at + 1);
                rules.insert(at, make_rule(rule, (nodes, optimize)));
            }
            RuleStep::BeforePhysical(name, nodes, optimize) => {
                let at = place(rules, name).unwrap_or(rules.len());
                rules.insert(at, make_rule(rule, (nodes, optimize)));
            }
            _ => {}
        }
    }
    rules.splice(0..0, first);
    for wrapper in list_rules() {
        let RuleStep::AroundPhysical(stock, function) = wrapper.step else { continue };
        for rule in rules.iter_mut().filter(|rule| stock.contains(&rule.name())) {
            *rule = Arc::new(WrappedRule { name: wrapper.name, stock: Arc::clone(rule), function });
        }
    }
    for (name, nodes) in SKIPPED_PHYSICAL {
        for rule in rules.iter_mut().filter(|rule| rule.name() == *name) {
            *rule = Arc::new(SkippableRule { stock: Arc::clone(rule), concerns: *nodes });
        }
    }
}

pub(in crate::sql) fn list_last_physical_rules() -> impl Iterator<Item = PhysicalRule> {
    list_rules().filter_map(|rule| match rule.step {
        RuleStep::LastPhysical(nodes, optimize) => {
            Some(make_rule(rule, (nodes, optimize)) as PhysicalRule)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use datafusion::optimizer::Optimizer;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::session_rule::{UpstreamIssue, UpstreamReport};
    use super::*;
    use crate::config;

    impl SessionRule {
        fn describe_place(&self) -> String {
            match self.step {
                RuleStep::FirstOfAll(..) => "analysis, first".into(),
                RuleStep::BeforeCoercion(..) => "analysis, before type coercion".into(),
                RuleStep::AfterCoercion(..) => "analysis, last".into(),
                RuleStep::FirstLogical(..) => "logical, first".into(),
                RuleStep::WithoutLogical => "logical, removed".into(),
                RuleStep::AroundLogical(stock, _) => {
                    format!("logical, around `{}`", stock.join("`, `"))
                }
                RuleStep::LastLogical(..) => "logical, last".into(),
                RuleStep::FirstPhysical(..) => "physical, first".into(),
                RuleStep::AfterPhysical(name, ..) => format!("physical, after `{name}`"),
                RuleStep::BeforePhysical(name, ..) => format!("physical, before `{name}`"),
                RuleStep::AroundPhysical(stock, _) => {
                    format!("physical, around `{}`", stock.join("`, `"))
                }
                RuleStep::LastPhysical(..) => "physical, last".into(),
            }
        }
    }

    /// Without this test, a place such as `AfterPhysical("no_such_rule", f)` would go unnoticed,
    /// because `add_physical_rules` then appends the new rule at the end.
    #[test]
    fn rules_refer_to_rules_of_datafusion() {
        let names = |rules: Vec<String>| rules.into_iter().collect::<BTreeSet<String>>();
        let physical = PhysicalOptimizer::new().rules;
        let physical = names(physical.iter().map(|rule| rule.name().to_owned()).collect());
        let logical = Optimizer::new().rules;
        let logical = names(logical.iter().map(|rule| rule.name().to_owned()).collect());
        for rule in list_rules() {
            match rule.step {
                RuleStep::AfterPhysical(name, ..) | RuleStep::BeforePhysical(name, ..) => {
                    let is_ours = list_rules().any(|other| other.name == name);
                    assert!(is_ours || physical.contains(name), "{name}: {physical:?}");
                }
                RuleStep::WithoutLogical => {
                    assert!(logical.contains(rule.name), "{}: {logical:?}", rule.name);
                }
                RuleStep::AroundLogical(stock, _) => {
                    assert!(
                        stock.iter().all(|name| logical.contains(*name)),
                        "{stock:?}: {logical:?}"
                    );
                }
                RuleStep::AroundPhysical(stock, _) => {
                    assert!(
                        stock.iter().all(|name| physical.contains(*name)),
                        "{stock:?}: {physical:?}"
                    );
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_switched_rule_has_a_setting() {
        let switched = list_rules().filter(|rule| matches!(rule.until, RemovalCondition::Speed));
        let found: BTreeSet<String> =
            switched.map(|rule| rule.name.replace("serrate_", "")).collect();
        let known: BTreeSet<String> =
            config::RULES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, known);
    }

    #[test]
    fn every_rule_but_protected_ones_can_be_disabled() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
        let settings = fs::read_to_string(&path).unwrap();
        for (name, _) in PROTECTED {
            assert!(list_rules().any(|rule| rule.name == name), "{name}");
            assert!(settings.contains(&format!("`{name}`")), "docs/settings.md lacks {name}");
        }
        for rule in list_rules() {
            let found = find_rule(rule.name);
            match PROTECTED.iter().find(|(name, _)| *name == rule.name) {
                Some((name, effect)) => {
                    let e = found.unwrap_err().to_string();
                    assert!(e.contains(name) && e.contains(effect), "{e}");
                }
                None => assert_eq!(found.unwrap(), rule.name),
            }
        }
        assert_eq!(find_rule("sortlists").unwrap(), "SortLists");
        let e = find_rule("float_keys").unwrap_err().to_string();
        let similar = "did you mean serrate_constant_float_keys or serrate_float_keys?";
        assert!(e.contains(similar) && e.contains("docs/internals/sql.md"), "{e}");
    }

    #[test]
    fn every_rule_says_whether_its_bug_is_reported() {
        let has_test = |rule: &SessionRule| {
            matches!(rule.until, RemovalCondition::Fails(_) | RemovalCondition::Passes(_))
        };
        for rule in list_rules() {
            let name = rule.name;
            match rule.upstream {
                UpstreamReport::Reported(issues) => {
                    assert!(!issues.is_empty() && has_test(rule), "{name}");
                }
                UpstreamReport::NotReported => assert!(has_test(rule), "{name}"),
                // Only a rule that works around a bug can have a test as its condition for removal.
                UpstreamReport::Ours => assert!(
                    matches!(rule.until, RemovalCondition::Speed | RemovalCondition::Feature),
                    "{name}"
                ),
            }
        }
    }

    const MARKS: [&str; 2] = ["<!-- rules -->\n", "<!-- end of rules -->\n"];

    /// Returns a link to an issue or a pull request. `/issues/N` is right for both, because GitHub
    /// redirects it to `/pull/N` if N is a pull request.
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
        for rule in list_rules() {
            let name = rule.name;
            let reports = match rule.upstream {
                UpstreamReport::Reported(issues) => {
                    issues.iter().map(link_issue).collect::<Vec<_>>().join(", ")
                }
                UpstreamReport::NotReported => "none found".into(),
                UpstreamReport::Ours => "ours".into(),
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
        for rule in list_rules() {
            if let RemovalCondition::Fails(test) | RemovalCondition::Passes(test) = rule.until {
                assert!(sources.contains(&format!("fn {test}(")), "there is no test {test}");
            }
        }
    }
}
