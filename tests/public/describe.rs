//! Describes a public item as lines of text.

use std::fmt::Write as _;

use syn::spanned::Spanned;
use syn::{Attribute, Fields, Generics, ImplItem, Item, TraitItem, Type, Visibility};

use crate::tree::{Definition, Tree, is_hidden, list_attributes};

/// Returns the lines for a definition, which users name by `path`.
pub(crate) fn entry(tree: &Tree, definition: &Definition, path: &str) -> String {
    if definition.module == "use" {
        return format!("use {path} = {}\n", definition.name);
    }
    let mut out = String::new();
    if let Some((_, number)) = definition.name.split_once('!') {
        let (_, items) = tree.modules().find(|(m, _)| **m == definition.module).unwrap();
        if let Item::Macro(call) = &items[number.parse::<usize>().unwrap()] {
            write_invocation(&mut out, "", path, &call.mac);
        }
        return out;
    }
    for item in tree.items(definition) {
        let features = features_of(list_attributes(item));
        match item {
            Item::Fn(i) => {
                let signature = join_lines(&source_of(&i.sig));
                let rest = signature.split_once(&i.sig.ident.to_string()).unwrap().1;
                let _ = writeln!(out, "fn {path}{rest}{features}");
            }
            Item::Const(i) => {
                let _ = writeln!(out, "const {path}: {}{features}", join_lines(&source_of(&i.ty)));
            }
            Item::Static(i) => {
                let _ = writeln!(out, "static {path}: {}{features}", join_lines(&source_of(&i.ty)));
            }
            Item::Type(i) => {
                let generics = write_generics(&i.generics);
                let _ = writeln!(
                    out,
                    "type {path}{generics} = {}{features}",
                    join_lines(&source_of(&i.ty))
                );
            }
            Item::Macro(_) => {
                let _ = writeln!(out, "macro {path}!");
            }
            Item::Struct(i) => {
                let _ = writeln!(out, "struct {path}{}{features}", write_generics(&i.generics));
                write_derives(&mut out, &i.attrs);
                for (number, field) in i.fields.iter().enumerate() {
                    if is_public(&field.vis) && !is_hidden(&field.attrs) {
                        let name =
                            field.ident.as_ref().map_or(number.to_string(), ToString::to_string);
                        let _ = writeln!(out, "  {name}: {}", join_lines(&source_of(&field.ty)));
                    }
                }
            }
            Item::Enum(i) => {
                let _ = writeln!(out, "enum {path}{}{features}", write_generics(&i.generics));
                write_derives(&mut out, &i.attrs);
                for variant in &i.variants {
                    let types = variant.fields.iter().map(|f| match &f.ident {
                        Some(name) => format!("{name}: {}", join_lines(&source_of(&f.ty))),
                        None => join_lines(&source_of(&f.ty)),
                    });
                    let types: Vec<String> = types.collect();
                    let fields = match variant.fields {
                        Fields::Unit => String::new(),
                        Fields::Named(_) => format!(" {{ {} }}", types.join(", ")),
                        Fields::Unnamed(_) => format!("({})", types.join(", ")),
                    };
                    let features = features_of(&variant.attrs);
                    let _ = writeln!(out, "  {}{fields}{features}", variant.ident);
                }
            }
            Item::Trait(i) => {
                let _ = writeln!(out, "trait {path}{}{features}", write_generics(&i.generics));
                for item in &i.items {
                    let line = match item {
                        TraitItem::Fn(f) => source_of(&f.sig),
                        TraitItem::Const(c) => format!("const {}: {}", c.ident, source_of(&c.ty)),
                        TraitItem::Type(t) => format!("type {}", t.ident),
                        _ => continue,
                    };
                    let _ = writeln!(out, "  {}", join_lines(&line));
                }
            }
            _ => {}
        }
    }
    if tree.is_type(definition) {
        let mut methods = Vec::new();
        for (module, items) in tree.modules() {
            for item in items {
                write_impl(tree, module, item, definition, &mut methods);
            }
        }
        methods.sort();
        out.extend(methods);
    }
    out
}

/// Adds the lines for an `impl` of a definition: its public methods, or the name of the trait.
fn write_impl(
    tree: &Tree,
    module: &str,
    item: &Item,
    definition: &Definition,
    lines: &mut Vec<String>,
) {
    let Item::Impl(block) = item else { return };
    let Type::Path(of) = &*block.self_ty else { return };
    let path: Vec<String> = of.path.segments.iter().map(|s| s.ident.to_string()).collect();
    if tree.resolve_type(module, &path).as_ref() != Some(definition) || is_hidden(&block.attrs) {
        return;
    }
    let features = features_of(&block.attrs);
    if let Some((_, name, _)) = &block.trait_ {
        let generics = write_generics(&block.generics);
        let line = format!("impl{generics} {} for {}", source_of(name), source_of(&*block.self_ty));
        lines.push(format!("  {}{features}\n", join_lines(&line)));
        return;
    }
    for item in &block.items {
        let mut line = String::new();
        match item {
            ImplItem::Fn(f) if is_public(&f.vis) && !is_hidden(&f.attrs) => {
                let features = features_of(&f.attrs);
                let _ = writeln!(line, "  {}{features}", join_lines(&source_of(&f.sig)));
            }
            ImplItem::Const(c) if is_public(&c.vis) && !is_hidden(&c.attrs) => {
                let _ = writeln!(line, "  const {}: {}", c.ident, join_lines(&source_of(&c.ty)));
            }
            ImplItem::Macro(call) => {
                let name = source_of(&call.mac.path);
                write_invocation(&mut line, "  ", &format!("{name}!"), &call.mac);
            }
            _ => continue,
        }
        if !line.is_empty() {
            lines.push(line.replace("\n", &format!("{features}\n")));
        }
    }
}

/// Writes the arguments of a macro call, one line for each line of the source.
fn write_invocation(out: &mut String, indent: &str, name: &str, call: &syn::Macro) {
    for line in source_of(&call.tokens).lines() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with("//") {
            let _ = writeln!(out, "{indent}{name} {line}");
        }
    }
}

fn write_derives(out: &mut String, attributes: &[Attribute]) {
    for attribute in attributes.iter().filter(|a| a.path().is_ident("derive")) {
        if let syn::Meta::List(list) = &attribute.meta {
            let _ = writeln!(out, "  derive {}", join_lines(&source_of(&list.tokens)));
        }
    }
}

fn write_generics(generics: &Generics) -> String {
    if generics.params.is_empty() { String::new() } else { join_lines(&source_of(generics)) }
}

/// Returns the features that an item requires, as the suffix of its line.
fn features_of(attributes: &[Attribute]) -> String {
    let mut out = String::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("cfg")) {
        if let syn::Meta::List(list) = &attribute.meta {
            let _ = write!(out, "  [{}]", join_lines(&source_of(&list.tokens)));
        }
    }
    out
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the source text of a syntax node.
fn source_of(of: &impl Spanned) -> String {
    of.span().source_text().unwrap_or_default()
}

/// Returns a source text on one line, as rustfmt would write it without a maximum width.
fn join_lines(source: &str) -> String {
    let words: Vec<&str> = source.split_whitespace().collect();
    let line = words.join(" ");
    line.replace("( ", "(").replace(", )", ")").replace("< ", "<").replace(", >", ">")
}
