//! Resolves table names in `dok_get('m', ..)`.

use std::fmt;
use std::sync::Arc;

use datafusion::catalog::{CatalogProviderList, TableProvider};
use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::FutureExt;

use super::DokTable;
use crate::functions::TableNames;
use serrate_core::internal::keyed::KeyedVersion;

type SessionCatalogs = (Arc<dyn CatalogProviderList>, String, String);

struct SessionTables(Arc<dyn Fn() -> SessionCatalogs + Send + Sync>);

impl fmt::Debug for SessionTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTables")
    }
}

impl SessionTables {
    fn from_context(ctx: &SessionContext) -> Self {
        fn read_catalogs(state: &datafusion::execution::SessionState) -> SessionCatalogs {
            let catalog = &state.config_options().catalog;
            (
                Arc::clone(state.catalog_list()),
                catalog.default_catalog.clone(),
                catalog.default_schema.clone(),
            )
        }
        let first = read_catalogs(&ctx.state());
        // The session owns the functions, so each function holds only a weak reference to the
        // session.
        let session = ctx.state_weak_ref();
        Self(Arc::new(move || match session.upgrade() {
            Some(state) => read_catalogs(&state.read()),
            None => (Arc::clone(&first.0), first.1.clone(), first.2.clone()),
        }))
    }
}

impl TableNames for SessionTables {
    fn find(&self, name: &str) -> Result<Option<Arc<KeyedVersion>>> {
        let (catalogs, catalog, schema) = (self.0)();
        let named = TableReference::parse_str(name).resolve(&catalog, &schema);
        let schema = catalogs.catalog(&named.catalog).and_then(|c| c.schema(&named.schema));
        let Some(schema) = schema else { return Ok(None) };
        // Resolves only registered tables: the look-up of a file path would wait for I/O.
        if !schema.table_names().iter().any(|n| **n == *named.table) {
            return Ok(None);
        }
        // The look-up of a registered table does not wait for I/O, so `now_or_never` returns its
        // result.
        let Some(table) = schema.table(&named.table).now_or_never() else { return Ok(None) };
        let Some(table) = table? else { return Ok(None) };
        let table: &dyn TableProvider = table.as_ref();
        match table.downcast_ref::<DokTable>() {
            Some(table) => Ok(Some(table.read_current()?)),
            None => plan_err!(
                "the table {name} is not STORED AS DOK, so dok_get and dok_contains cannot look up its rows; join it instead"
            ),
        }
    }
}

/// Registers the names of the session's tables for `dok_get('m', ..)` and `dok_contains('m', ..)`.
/// Without this, both functions accept only paths. [`session`](crate::sql::session()) calls this
/// function after [`register_functions`](crate::sql::register_functions).
pub(crate) fn register_dok_names(ctx: &SessionContext) {
    let names: Arc<dyn TableNames> = Arc::new(SessionTables::from_context(ctx));
    for function in crate::functions::build_lookup_functions(&names) {
        ctx.register_udf(function);
    }
}
