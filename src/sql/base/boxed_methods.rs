/// Implements an async method of a DataFusion trait for the type `$type` by its own async method:
/// `boxed_method!(FilesTable: scan = plan_scan)`.
///
/// `async_trait` gives each method bounds on its lifetimes. With such bounds, the compiler does not
/// cache which types are `Send`. It then needs about 4 seconds for each method whose arguments or
/// variables contain a `LogicalPlan` or an `Expr`, in all one minute of each build and check of
/// this crate (rustc 1.95, `-Zself-profile`). This macro therefore makes the future in an inner
/// function without bounds, in which all references have the lifetime `'run`. The type of each
/// argument is written twice: with the lifetimes of the trait's method, then with `'run`.
macro_rules! boxed_method {
    ($type:ty: scan = $method:ident) => {
        boxed_method! {
            @ $type: scan = $method
            ['this 'state 'columns 'filters]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             projection: Option<&'columns Vec<usize>> | Option<&'run Vec<usize>>,
             filters: &'filters [datafusion::logical_expr::Expr] | &'run [datafusion::logical_expr::Expr],
             limit: Option<usize> | Option<usize>)
            -> Arc<dyn datafusion::physical_plan::ExecutionPlan>
        }
    };
    ($type:ty: scan_with_args = $method:ident) => {
        // The lifetimes have the same order as in the trait's method, which declares `'args` before
        // the lifetimes that `async_trait` adds for references.
        boxed_method! {
            @ $type: scan_with_args = $method
            ['args 'this 'state]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             args: datafusion::catalog::ScanArgs<'args> | datafusion::catalog::ScanArgs<'run>)
            -> datafusion::catalog::ScanResult
        }
    };
    ($type:ty: insert_into = $method:ident) => {
        boxed_method! {
            @ $type: insert_into = $method
            ['this 'state]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             input: Arc<dyn datafusion::physical_plan::ExecutionPlan> | Arc<dyn datafusion::physical_plan::ExecutionPlan>,
             insert_op: datafusion::logical_expr::dml::InsertOp | datafusion::logical_expr::dml::InsertOp)
            -> Arc<dyn datafusion::physical_plan::ExecutionPlan>
        }
    };
    ($type:ty: delete_from = $method:ident) => {
        boxed_method! {
            @ $type: delete_from = $method
            ['this 'state]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             filters: Vec<datafusion::logical_expr::Expr> | Vec<datafusion::logical_expr::Expr>)
            -> Arc<dyn datafusion::physical_plan::ExecutionPlan>
        }
    };
    ($type:ty: update = $method:ident) => {
        boxed_method! {
            @ $type: update = $method
            ['this 'state]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             assignments: Vec<(String, datafusion::logical_expr::Expr)> | Vec<(String, datafusion::logical_expr::Expr)>,
             filters: Vec<datafusion::logical_expr::Expr> | Vec<datafusion::logical_expr::Expr>)
            -> Arc<dyn datafusion::physical_plan::ExecutionPlan>
        }
    };
    ($type:ty: create = $method:ident) => {
        boxed_method! {
            @ $type: create = $method
            ['this 'state 'command]
            (state: &'state dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session,
             command: &'command datafusion::logical_expr::CreateExternalTable | &'run datafusion::logical_expr::CreateExternalTable)
            -> Arc<dyn datafusion::catalog::TableProvider>
        }
    };
    ($type:ty: try_new = $method:ident) => {
        boxed_method! {
            @ $type: try_new = $method
            ['this 'url]
            (url: &'url str | &'run str)
            -> Option<Arc<dyn datafusion::catalog::TableProvider>>
        }
    };
    ($type:ty: write_all = $method:ident) => {
        boxed_method! {
            @ $type: write_all = $method
            ['this 'context]
            (data: datafusion::execution::SendableRecordBatchStream | datafusion::execution::SendableRecordBatchStream,
             context: &'context Arc<datafusion::execution::TaskContext> | &'run Arc<datafusion::execution::TaskContext>)
            -> u64
        }
    };
    ($type:ty: create_physical_plan = $method:ident) => {
        boxed_method! {
            @ $type: create_physical_plan = $method
            ['this 'plan 'session]
            (logical_plan: &'plan datafusion::logical_expr::LogicalPlan | &'run datafusion::logical_expr::LogicalPlan,
             session: &'session dyn datafusion::catalog::Session | &'run dyn datafusion::catalog::Session)
            -> Arc<dyn datafusion::physical_plan::ExecutionPlan>
        }
    };
    (
        @ $type:ty: $name:ident = $method:ident
        [$($life:lifetime)*]
        ($($argument:ident: $outer:ty | $inner:ty),*)
        -> $output:ty
    ) => {
        fn $name<$($life,)* 'run>(
            &'this self,
            $($argument: $outer),*
        ) -> futures::future::BoxFuture<'run, datafusion::error::Result<$output>>
        where
            $($life: 'run,)*
            Self: 'run,
        {
            fn make_future<'run>(
                of: &'run $type,
                $($argument: $inner),*
            ) -> futures::future::BoxFuture<'run, datafusion::error::Result<$output>> {
                Box::pin(of.$method($($argument),*))
            }
            make_future(self, $($argument),*)
        }
    };
}

pub(in crate::sql) use boxed_method;
