//! Parses queries in quotes, as in `ragged_nest('SELECT ..', 'id')`.

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::ast::Query;
use datafusion::logical_expr::sqlparser::parser::{Parser, ParserError};
use datafusion::logical_expr::sqlparser::tokenizer::Token;

use crate::sql::base::deep_stack::call_on_deep_stack;
use crate::sql::statement::parsing::depth::check_depth;
use crate::sql::statement::parsing::dialect::build_default_dialect;
use crate::sql::statement::parsing::forms::rewrite_known_forms;
use crate::sql::statement::parsing::joined_numbers::check_numbers;

/// Maximum number of nested parentheses and CASE in a query in quotes. This is the default of the
/// setting `datafusion.sql_parser.recursion_limit`, which is not read for queries in quotes.
const MOST_NESTED: usize = 50;

/// Parses a query in quotes like a statement: with the same precedences of operators, the same
/// additional syntax and the default limit of depth.
///
/// # Errors
/// If the text is not a query, or is nested too deeply.
pub(in crate::sql) fn parse_query_text(text: &str) -> Result<Query> {
    let dialect = build_default_dialect();
    let dialect = dialect.as_ref();
    let text = rewrite_known_forms(text, dialect);
    check_depth(&text, dialect, MOST_NESTED)?;
    check_numbers(&text, dialect)?;
    let parse = || {
        // The parser counts several levels where `check_depth` counts one, so the parser gets a
        // higher limit.
        let parser = Parser::new(dialect).with_recursion_limit(MOST_NESTED * 4);
        let mut parser = parser.try_with_sql(&text)?;
        let query = parser.parse_query()?;
        parser.expect_token(&Token::EOF)?;
        Ok(*query)
    };
    call_on_deep_stack(parse).map_err(|e: ParserError| DataFusionError::SQL(Box::new(e), None))
}
