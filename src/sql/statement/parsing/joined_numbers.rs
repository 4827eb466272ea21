use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};

/// Returns an error for `1_000` and `12abc`, which the parser reads as a number with an alias.
pub(in crate::sql) fn check_numbers(text: &str, dialect: &dyn Dialect) -> Result<()> {
    if !has_joined_number(text) {
        return Ok(());
    }
    // This check accepts an invalid text. The parser reports the error later.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    for pair in tokens.windows(2) {
        if let [Token::Number(digits, _), Token::Word(word)] = pair
            && word.quote_style.is_none()
        {
            let name = &word.value;
            let digits_only: String = name.chars().filter(char::is_ascii_digit).collect();
            let is_separated = name.chars().all(|c| c == '_' || c.is_ascii_digit());
            return match is_separated {
                true => plan_err!(
                    "{digits}{name} is not a number; write {digits}{digits_only}, without underscores"
                ),
                false => plan_err!(
                    "{digits}{name} is neither a number nor a name; write {digits} {name} for the number {digits} with the alias {name}, or \"{digits}{name}\" in double quotes for a name"
                ),
            };
        }
    }
    Ok(())
}

/// Whether a text has a number directly before a letter or an underscore, as in `1_000` or `12abc`.
/// The digits of a name such as `t1` are not a number.
fn has_joined_number(text: &str) -> bool {
    let mut before = ' ';
    let mut in_number = false;
    for c in text.chars() {
        let is_name = c == '_' || c.is_alphabetic();
        if is_name && in_number {
            return true;
        }
        let continues = before == '_' || before.is_alphanumeric();
        in_number = c.is_ascii_digit() && (in_number || !continues);
        before = c;
    }
    false
}
