//! Rewrites `LIKE .. ESCAPE` to patterns with backslashes, the only escape character that
//! DataFusion supports.

use datafusion::logical_expr::sqlparser::ast::{Expr, Value, ValueWithSpan};

/// Rewrites `x LIKE 'a!%' ESCAPE '!'` to `x LIKE 'a\%'`, if the pattern is a literal.
pub(in crate::sql) fn use_backslash(expr: &mut Expr) {
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr
    else {
        return;
    };
    let Some(ValueWithSpan { value: Value::SingleQuotedString(escape), .. }) = escape_char else {
        return;
    };
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) =
        pattern.as_mut()
    else {
        return;
    };
    let mut chars = escape.chars();
    let escape = chars.next();
    if chars.next().is_some() {
        return;
    }
    let Some(rewritten) = escape_with_backslash(text, escape) else { return };
    *text = rewritten;
    *escape_char = None;
}

/// Returns the pattern with backslash escapes, or `None` if it ends with the escape character.
fn escape_with_backslash(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        let (c, escaped) = match Some(next) == escape {
            true => (chars.next()?, true),
            false => (next, false),
        };
        if c == '\\' || (escaped && matches!(c, '%' | '_')) {
            out.push('\\');
        }
        out.push(c);
    }
    Some(out)
}
