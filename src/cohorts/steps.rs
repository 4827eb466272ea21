//! [`Attrition`]: how many subjects and triggers remain after each criterion.

use super::criteria::CohortCriteria;
use super::events::ShardEvents;
use super::tree::CountConstraint;

/// A criterion, and how many subjects and triggers satisfy it and all previous criteria.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttritionStep {
    pub(crate) name: String,
    pub(crate) rule: String,
    /// Whether the criterion bounds a count in a window. It is then indented below the criterion of
    /// the window itself.
    pub(crate) is_part: bool,
    pub(crate) subjects: u64,
    /// Number of triggers that satisfy this and all previous criteria; `None` for criteria on
    /// subjects.
    pub(crate) realizations: Option<u64>,
}

/// Subjects and triggers that remain after each criterion, in the order of evaluation.
#[derive(Clone, Debug)]
pub(crate) struct Attrition {
    pub(crate) steps: Vec<AttritionStep>,
    trigger: usize,
    /// For each plain predicate, whether it matches a code of the shards that were added.
    matched: Vec<bool>,
}

impl Attrition {
    pub(crate) fn new(criteria: &CohortCriteria) -> Self {
        let step = |name: &str, rule: String, is_part: bool, realizations: Option<u64>| {
            AttritionStep { name: name.into(), rule, is_part, subjects: 0, realizations }
        };
        let mut steps = vec![step("data", "all subjects".into(), false, None)];
        for column in criteria.statics.iter().map(|c| &criteria.columns[*c]) {
            let rule = format!("static: {}", column.definition);
            steps.push(step(&column.name, rule, false, None));
        }
        let column = &criteria.columns[criteria.trigger];
        let rule = match column.name == column.definition {
            true => column.name.clone(),
            false => format!("{}: {}", column.name, column.definition),
        };
        let trigger = steps.len();
        steps.push(step("trigger", rule, false, Some(0)));
        for edge in &criteria.edges {
            steps.push(step(&edge.name, edge.definition.clone(), false, Some(0)));
            for constraint in &edge.constraints {
                let rule = describe_constraint(constraint);
                steps.push(step(&constraint.predicate, rule, true, Some(0)));
            }
        }
        Self { steps, trigger, matched: vec![false; criteria.plain.len()] }
    }

    /// Counts one trigger that satisfies the first `passed` criteria after the step `trigger`: adds
    /// 1 to `realizations` of the step `trigger` and of these `passed` steps.
    pub(super) fn add_realization(&mut self, passed: usize) {
        for step in self.steps.iter_mut().skip(self.trigger).take(passed + 1) {
            step.realizations = step.realizations.map(|n| n + 1);
        }
    }

    /// Counts one subject that satisfies the criteria of the first `passed` steps: adds 1 to
    /// `subjects` of each of them. The first step, `data`, counts all subjects.
    pub(super) fn add_subject(&mut self, passed: usize) {
        self.steps.iter_mut().take(passed).for_each(|step| step.subjects += 1);
    }

    /// Records which predicates match a code of a shard, for [`describe_unmatched`].
    ///
    /// [`describe_unmatched`]: Self::describe_unmatched
    pub(crate) fn add_shard(&mut self, shard: &ShardEvents) {
        shard.mark_matched_predicates(&mut self.matched);
    }

    /// Returns a note that names the predicates that match no code of the added shards, because
    /// their codes may be misspelled. Returns `None` if there are no such predicates.
    pub(crate) fn describe_unmatched(&self, criteria: &CohortCriteria) -> Option<String> {
        let unmatched = criteria.plain.iter().zip(&self.matched).filter(|(_, matched)| !**matched);
        let keys: Vec<&str> = unmatched.map(|(predicate, _)| predicate.key.as_str()).collect();
        (!keys.is_empty()).then(|| {
            format!("no code of the data matches {}; check the spelling", keys.join(" or "))
        })
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, other) in self.steps.iter_mut().zip(&other.steps) {
            own.subjects += other.subjects;
            own.realizations = own.realizations.zip(other.realizations).map(|(a, b)| a + b);
        }
        for (own, other) in self.matched.iter_mut().zip(&other.matched) {
            *own |= *other;
        }
    }
}

pub(super) fn describe_constraint(constraint: &CountConstraint) -> String {
    match (constraint.min, constraint.max) {
        (None | Some(0), Some(0)) => "none".into(),
        (Some(min), Some(max)) if min == max => format!("exactly {min}"),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number".into(),
    }
}
