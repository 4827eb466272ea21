//! [`delegate!`], for functions that replace only some methods of a DataFusion function.

/// Defines methods of `ScalarUDFImpl` that call the same method of the function in a field. Also
/// works in implementations of `AggregateUDFImpl` and `WindowUDFImpl`, for methods that these
/// traits have in common with `ScalarUDFImpl`.
///
/// `delegate!(inner: name, aliases, signature);` defines `name`, `aliases` and `signature`.
/// `aggregate_names` defines the three methods that name a call of an aggregate.
macro_rules! delegate {
    ($field:ident: $($method:ident),+) => {
        $($crate::functions::delegate!(@ $field $method);)+
    };
    (@ $field:ident name) => {
        fn name(&self) -> &str {
            self.$field.name()
        }
    };
    (@ $field:ident aliases) => {
        fn aliases(&self) -> &[String] {
            self.$field.aliases()
        }
    };
    (@ $field:ident schema_name) => {
        fn schema_name(
            &self,
            args: &[datafusion::logical_expr::Expr],
        ) -> datafusion::error::Result<String> {
            self.$field.schema_name(args)
        }
    };
    // The names of a call of an aggregate, which gets the arguments as `AggregateFunctionParams`.
    (@ $field:ident aggregate_names) => {
        fn schema_name(
            &self,
            params: &datafusion::logical_expr::expr::AggregateFunctionParams,
        ) -> datafusion::error::Result<String> {
            self.$field.schema_name(params)
        }

        fn display_name(
            &self,
            params: &datafusion::logical_expr::expr::AggregateFunctionParams,
        ) -> datafusion::error::Result<String> {
            self.$field.display_name(params)
        }

        fn human_display(
            &self,
            params: &datafusion::logical_expr::expr::AggregateFunctionParams,
        ) -> datafusion::error::Result<String> {
            self.$field.human_display(params)
        }
    };
    (@ $field:ident signature) => {
        fn signature(&self) -> &datafusion::logical_expr::Signature {
            self.$field.signature()
        }
    };
    (@ $field:ident coerce_types) => {
        fn coerce_types(
            &self,
            types: &[arrow::datatypes::DataType],
        ) -> datafusion::error::Result<Vec<arrow::datatypes::DataType>> {
            self.$field.coerce_types(types)
        }
    };
    (@ $field:ident return_type) => {
        fn return_type(
            &self,
            types: &[arrow::datatypes::DataType],
        ) -> datafusion::error::Result<arrow::datatypes::DataType> {
            self.$field.return_type(types)
        }
    };
    (@ $field:ident return_field_from_args) => {
        fn return_field_from_args(
            &self,
            args: datafusion::logical_expr::ReturnFieldArgs<'_>,
        ) -> datafusion::error::Result<arrow::datatypes::FieldRef> {
            self.$field.return_field_from_args(args)
        }
    };
    (@ $field:ident is_nullable) => {
        fn is_nullable(&self) -> bool {
            self.$field.is_nullable()
        }
    };
    (@ $field:ident default_value) => {
        fn default_value(
            &self,
            data_type: &arrow::datatypes::DataType,
        ) -> datafusion::error::Result<datafusion::scalar::ScalarValue> {
            self.$field.default_value(data_type)
        }
    };
    (@ $field:ident documentation) => {
        fn documentation(&self) -> Option<&datafusion::logical_expr::Documentation> {
            self.$field.documentation()
        }
    };
}
pub(crate) use delegate;
