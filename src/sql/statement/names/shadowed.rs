//! Renames WITH queries that have the name of a WITH query of an enclosing query.

use std::ops::ControlFlow;

use datafusion::logical_expr::sqlparser::ast::{
    Cte, Ident, ObjectName, Query, TableAlias, TableFactor, VisitMut, VisitorMut,
};

use crate::sql::statement::folding::fold_name;
use crate::sql::statement::scopes::CteScopes;

/// Renames the inner of two WITH queries that have the same name. In SQL, the inner query hides the
/// outer one, but DataFusion rejects a statement that defines a name twice.
pub(in crate::sql) fn rename_inner<S: VisitMut>(statement: &mut S) {
    let _ = statement.visit(&mut ShadowedNames::default());
}

struct WithQuery {
    /// The name in the statement, in lower case unless it is quoted.
    written: String,
    /// The new name, or `None` if the query keeps its name.
    new: Option<Ident>,
}

#[derive(Default)]
struct ShadowedNames {
    scopes: CteScopes<WithQuery>,
    renamed: usize,
}

impl ShadowedNames {
    fn define_query(&mut self, cte: &mut Cte, before: &[WithQuery]) -> WithQuery {
        let name = &mut cte.alias.name;
        let written = fold_name(name);
        // Two equal names in one WITH are not renamed, because the planner rejects them.
        let repeated = before.iter().any(|other| other.written == written);
        let hides = !repeated && self.scopes.iter_visible().any(|outer| outer.written == written);
        let new = hides.then(|| {
            self.renamed = self.renamed.saturating_add(1);
            Ident::with_quote('"', format!("__serrate_with_{}", self.renamed))
        });
        if let Some(new) = &new {
            *name = new.clone();
        }
        WithQuery { written, new }
    }
}

impl VisitorMut for ShadowedNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut defined = Vec::new();
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let named = self.define_query(cte, &defined);
            defined.push(named);
        }
        self.scopes.enter_scope(defined, recursive);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_scope();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [part] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(written) = part.as_ident().cloned() else { return ControlFlow::Continue(()) };
        let folded = fold_name(&written);
        let meant = self.scopes.iter_visible().filter(|named| named.written == folded).last();
        if let Some(new) = meant.and_then(|named| named.new.clone()) {
            *name = ObjectName::from(vec![new]);
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: written,
                columns: Vec::new(),
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
