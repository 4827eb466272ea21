//! Finds which items a Rust source file uses, without a compiler: paths from the top of the crate,
//! also in groups (`use crate::{a, b::c}`) and relative to a parent (`super::super::a`). Comments,
//! literals and unit tests do not count.

/// A path that a source file uses, as segments from the top of the crate, and the line on which it
/// begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub path: Vec<String>,
    pub line: usize,
    /// Whether the path is re-exported, as by `pub use child::Name`.
    pub exported: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    /// The token `::`.
    Colons,
    Sign(char),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    text: String,
    line: usize,
}

/// Returns the paths within the crate that the source of the module `module` uses. `names` are the
/// names of the crate: `crate`, and in a binary next to a library also that of the library.
///
/// # Errors
///
/// Returns an error if the source renames or imports the whole crate (`use crate as c`, `use
/// crate::*`), which would hide what it uses.
pub(crate) fn list_uses(
    source: &str,
    module: &[String],
    names: &[&str],
) -> Result<Vec<Use>, String> {
    let tokens = without_tests(&split_tokens(source));
    let mut found = Vec::new();
    // The inline modules around the current token, each with the depth of its braces.
    let mut inner: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Sign('{') => {
                depth += 1;
                if let [.., keyword, name] = &tokens[..at]
                    && keyword.text == "mod"
                {
                    inner.push((name.text.clone(), depth));
                }
            }
            Kind::Sign('}') => {
                if inner.last().is_some_and(|(_, opened)| *opened == depth) {
                    inner.pop();
                }
                depth = usize::saturating_sub(depth, 1);
            }
            Kind::Word if !follows_colons(&tokens, at) => {
                let here: Vec<String> =
                    module.iter().chain(inner.iter().map(|(name, _)| name)).cloned().collect();
                let exported = is_exported(&tokens[..at]);
                if let Some(base) = base_of(&token.text, &here, names) {
                    read_tree(&tokens, &mut at, base, exported, &mut found)?;
                    continue;
                }
                // `use child::Name` names a child module, or another crate, which has none of our
                // names.
                if at.checked_sub(1).is_some_and(|before| tokens[before].text == "use") {
                    let path = here.into_iter().chain([token.text.clone()]).collect();
                    read_rest(&tokens, &mut at, path, exported, &mut found)?;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(found)
}

/// Returns the module at which a path with the first segment `word` begins, or `None` if the
/// segment is an ordinary name.
fn base_of(word: &str, here: &[String], names: &[&str]) -> Option<Vec<String>> {
    match word {
        "self" => Some(here.to_vec()),
        "super" => Some(here[..here.len().saturating_sub(1)].to_vec()),
        word if names.contains(&word) => Some(Vec::new()),
        _ => None,
    }
}

fn follows_colons(tokens: &[Token], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| tokens[before].kind == Kind::Colons)
}

/// Returns whether the tokens end in `pub use` or `pub(..) use`.
fn is_exported(before: &[Token]) -> bool {
    let words: Vec<&str> = before.iter().rev().take(2).map(|t| t.text.as_str()).collect();
    matches!(words[..], ["use", "pub" | ")", ..])
}

/// Reads a path or a tree of paths that continues `path`, and adds the paths to `found`. `at` is
/// the index of its first token.
fn read_tree(
    tokens: &[Token],
    at: &mut usize,
    mut path: Vec<String>,
    exported: bool,
    found: &mut Vec<Use>,
) -> Result<(), String> {
    let line = tokens[*at].line;
    let whole = path.is_empty() && tokens[*at].text != "self";
    *at += 1;
    let text = |at: usize| tokens.get(at).map_or("", |t| t.text.as_str());
    let mut named = false;
    while tokens.get(*at).is_some_and(|t| t.kind == Kind::Colons) {
        *at += 1;
        match text(*at) {
            "super" => {
                path.pop();
                *at += 1;
            }
            "{" => return read_group(tokens, at, &path, exported, found),
            "*" if path.is_empty() => {
                return Err(format!("line {line}: everything at the top of the crate; name it"));
            }
            _ if tokens.get(*at).is_some_and(|t| t.kind == Kind::Word) => {
                path.push(text(*at).into());
                named = true;
                *at += 1;
            }
            // A turbofish `::<` or a `*` ends the path.
            _ => break,
        }
    }
    if whole && !named && matches!(text(*at), "as" | ";") {
        return Err(format!("line {line}: the crate under another name; name what is in it"));
    }
    if named {
        found.push(Use { path, line, exported });
    }
    Ok(())
}

/// Reads the paths in a group such as `{a, b::{c, d}}` and adds them to `found`. `at` is the index
/// of the opening brace.
fn read_group(
    tokens: &[Token],
    at: &mut usize,
    base: &[String],
    exported: bool,
    found: &mut Vec<Use>,
) -> Result<(), String> {
    *at += 1;
    while let Some(token) = tokens.get(*at) {
        match (&token.kind, token.text.as_str()) {
            (_, "}") => {
                *at += 1;
                return Ok(());
            }
            (_, "*" | "self") if base.is_empty() => {
                return Err(format!("line {}: the whole crate; name what is in it", token.line));
            }
            (_, "self" | "*") => {
                found.push(Use { path: base.to_vec(), line: token.line, exported });
                *at += 1;
            }
            (_, "as") => *at += 2,
            (Kind::Word, word) => {
                let path = base.iter().cloned().chain([word.to_owned()]).collect();
                // The word at `at` is the next segment of the path, and the rest may follow.
                read_rest(tokens, at, path, exported, found)?;
            }
            _ => *at += 1,
        }
    }
    Ok(())
}

/// Reads a path like [`read_tree`], if the token at `at` is the last segment of `path`.
fn read_rest(
    tokens: &[Token],
    at: &mut usize,
    path: Vec<String>,
    exported: bool,
    found: &mut Vec<Use>,
) -> Result<(), String> {
    let line = tokens[*at].line;
    let before = found.len();
    read_tree(tokens, at, path.clone(), exported, found)?;
    if found.len() == before {
        found.push(Use { path, line, exported });
    }
    Ok(())
}

/// Returns the tokens without the items that have `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let texts: Vec<&str> = tokens[at..].iter().take(8).map(|t| t.text.as_str()).collect();
        let test = matches!(
            texts[..],
            ["#", "[", "cfg", "(", "test", ")", ..]
                | ["#", "[", "cfg", "(", "all", "(", "test", ..]
        );
        if test {
            at = skip_item(tokens, at);
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index of the token after the item that begins at `at`, which ends with a semicolon
/// or a closing brace.
fn skip_item(tokens: &[Token], mut at: usize) -> usize {
    let mut open = 0usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            Kind::Sign('{' | '(' | '[') => open += 1,
            Kind::Sign(')' | ']') => open = open.saturating_sub(1),
            Kind::Sign('}') => {
                open = open.saturating_sub(1);
                if open == 0 {
                    return at;
                }
            }
            Kind::Sign(';') if open == 0 => return at,
            _ => {}
        }
    }
    at
}

/// Splits a source into words, `::` and single characters. Comments and literals are omitted.
fn split_tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied().unwrap_or(' ');
        let start = at;
        match c {
            '/' if next == '/' => at = end_of(&chars, at, |c| c == '\n'),
            '/' if next == '*' => at = end_of_comment(&chars, at),
            'r' | 'b' | 'c' if raw_hashes(&chars, at).is_some() => {
                at = end_of_raw(&chars, at);
            }
            '"' => at = end_of_string(&chars, at, '"'),
            // A quote without a second one after one character begins a lifetime, not a literal.
            '\'' if next == '\\' || chars.get(at + 2) == Some(&'\'') => {
                at = end_of_string(&chars, at, '\'');
            }
            ':' if next == ':' => {
                tokens.push(Token { kind: Kind::Colons, text: "::".into(), line });
                at += 2;
            }
            c if is_word(c) => {
                at = end_of(&chars, at, |c| !is_word(c));
                let text = chars[start..at].iter().collect();
                tokens.push(Token { kind: Kind::Word, text, line });
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token { kind: Kind::Sign(c), text: c.into(), line });
                }
                at += 1;
            }
        }
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn end_of(chars: &[char], from: usize, ends: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|c| ends(*c)).map_or(chars.len(), |n| from + n)
}

/// Returns the end of the block comment that begins at `from`. Block comments nest.
fn end_of_comment(chars: &[char], from: usize) -> usize {
    let (mut at, mut open) = (from, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, open) = (at + 2, open + 1),
            ('*', Some('/')) => {
                (at, open) = (at + 2, open - 1);
                if open == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn end_of_string(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from + 1;
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns the number of `#` of the raw string that begins at `at`, such as `r"` or `br##"`, or
/// `None` if no raw string begins there.
fn raw_hashes(chars: &[char], at: usize) -> Option<usize> {
    let starts_word =
        at.checked_sub(1).is_none_or(|b| !chars[b].is_alphanumeric() && chars[b] != '_');
    let after = end_of(chars, at, |c| !matches!(c, 'r' | 'b' | 'c'));
    let quote = end_of(chars, after, |c| c != '#');
    let raw = chars[at..after].last() == Some(&'r');
    (starts_word && raw && chars.get(quote) == Some(&'"')).then_some(quote - after)
}

fn end_of_raw(chars: &[char], at: usize) -> usize {
    let hashes = raw_hashes(chars, at).unwrap_or(0);
    let mut at = end_of(chars, at, |c| c == '"') + 1;
    while at < chars.len() {
        let closes = chars[at] == '"'
            && chars.get(at + 1..at + 1 + hashes).is_some_and(|c| c.iter().all(|c| *c == '#'));
        if closes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    at
}
