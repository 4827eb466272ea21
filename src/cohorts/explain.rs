//! Describes as text what a configuration searches for: predicates, trigger and tree of windows.

use super::boundary::WindowSide;
use super::criteria::{CountSource, Criteria};
use super::steps::describe_constraint;

impl Criteria {
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
            let (left, right) = edge.closed;
            let ends = format!("{}{}", if left { '[' } else { '(' }, if right { ']' } else { ')' });
            let mut line =
                format!("{:1$}{2} = {3} {ends}", "", 2 * depth, edge.name, edge.definition);
            if let Some((_, side)) = self.index_timestamp.filter(|(index, _)| *index == e) {
                line.push_str(match side {
                    WindowSide::Start => ", prediction time at the start",
                    WindowSide::End => ", prediction time at the end",
                });
            }
            if let Some((_, column)) = self.label.filter(|(label, _)| *label == e) {
                line.push_str(&format!(", label {}", self.columns[column].name));
            }
            lines.push(line);
            for constraint in &edge.constraints {
                let rule = describe_constraint(constraint);
                lines.push(format!("{:1$}{2}: {rule}", "", 2 * depth + 4, constraint.predicate));
            }
        }
        lines
    }
}
