//! Describes as text what a configuration searches for: predicates, trigger and tree of windows.

use super::boundary::WindowSide;
use super::criteria::{CohortCriteria, CountSource};
use super::steps::describe_constraint;

impl CohortCriteria {
    pub(crate) fn explain_plan(&self) -> Vec<String> {
        let mut lines = vec!["predicates".to_owned()];
        for column in &self.columns {
            let kind = if column.is_static { "static: " } else { "" };
            match column.counted {
                CountSource::AnyEvent | CountSource::RecordStart | CountSource::RecordEnd => {
                    lines.push(format!("  {}: {}", column.name, column.definition));
                }
                _ => lines.push(format!("  {} = {kind}{}", column.name, column.definition)),
            }
        }
        lines.push(format!("trigger: {}", self.columns[self.trigger].name));
        let mut depths = Vec::with_capacity(self.edges.len());
        for (e, edge) in self.edges.iter().enumerate() {
            let depth =
                edge.parent.and_then(|parent| depths.get(parent)).map_or(1, |d: &usize| d + 1);
            depths.push(depth);
            let parent = edge.parent.and_then(|parent| self.edges.get(parent));
            let from = parent.map_or("trigger", |parent| parent.name.as_str());
            let (first, last) = match edge.target.is_backward() {
                true => (edge.name.as_str(), from),
                false => (from, edge.name.as_str()),
            };
            let (left, right) = edge.closed;
            let (open, close) = (if left { '[' } else { '(' }, if right { ']' } else { ')' });
            lines.push(format!(
                "{:indent$}{} = {}, counts in {open}{first}, {last}{close}",
                "",
                edge.name,
                edge.definition,
                indent = 2 * depth
            ));
            let mut push_part = |part: String| {
                lines.push(format!("{:indent$}{part}", "", indent = 2 * depth + 4));
            };
            for constraint in &edge.constraints {
                let rule = describe_constraint(constraint);
                push_part(format!("{}: {rule}", constraint.predicate));
            }
            if let Some((_, side)) = self.index_timestamp.filter(|(index, _)| *index == e) {
                let side = match side {
                    WindowSide::Start => "start",
                    WindowSide::End => "end",
                };
                push_part(format!("prediction time: {side} of the window"));
            }
            if let Some(label) = self.label.filter(|label| label.edge == e) {
                push_part(format!("label: {} > 0", self.columns[label.column].name));
            }
        }
        lines
    }
}
