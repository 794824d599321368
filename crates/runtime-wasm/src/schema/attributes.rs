//! What `#[serde(...)]` and documentation say about a type, a field or a variant.

use syn::{Attribute, Expr, ExprLit, Lit, Meta, meta::ParseNestedMeta};

use super::types::Direction;

/// The attributes that change the form of a value.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "serde has as many words for it")]
pub(crate) struct SerdeAttributes {
    rename: Both<Option<String>>,
    rename_all: Both<Option<String>>,
    rename_all_fields: Both<Option<String>>,
    skip: Both<bool>,
    /// Read or written by code of its own.
    opaque: Both<bool>,
    pub(crate) default: bool,
    pub(crate) skip_if: bool,
    pub(crate) flatten: bool,
    pub(crate) untagged: bool,
    pub(crate) transparent: bool,
    pub(crate) other: bool,
    pub(crate) tag: Option<String>,
    pub(crate) content: Option<String>,
}

/// Something that may differ between reading and writing.
#[derive(Debug, Clone, Default)]
struct Both<T> {
    read: T,
    write: T,
}

impl<T: Clone> Both<T> {
    fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    fn set(&mut self, value: T) {
        *self = Self { read: value.clone(), write: value };
    }
}

impl SerdeAttributes {
    /// Reads all `#[serde(...)]`. What does not parse is for the compiler to complain about.
    pub(crate) fn read(attributes: &[Attribute]) -> Self {
        let mut read = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let _ = attribute.parse_nested_meta(|meta| read.take(&meta));
        }
        read
    }

    pub(crate) fn renamed(&self, direction: Direction) -> Option<String> {
        self.rename.get(direction).clone()
    }

    pub(crate) fn rule(&self, direction: Direction) -> Option<&str> {
        self.rename_all.get(direction).as_deref()
    }

    pub(crate) fn fields_rule(&self, direction: Direction) -> Option<&str> {
        self.rename_all_fields.get(direction).as_deref()
    }

    pub(crate) fn is_skipped(&self, direction: Direction) -> bool {
        *self.skip.get(direction)
    }

    pub(crate) fn is_opaque(&self, direction: Direction) -> bool {
        *self.opaque.get(direction)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let Some(name) = meta.path.get_ident().map(ToString::to_string) else { return skip_value(meta) };
        match name.as_str() {
            "rename" => take_names(meta, &mut self.rename)?,
            "rename_all" => take_names(meta, &mut self.rename_all)?,
            "rename_all_fields" => take_names(meta, &mut self.rename_all_fields)?,
            "tag" => self.tag = Some(text(meta)?),
            "content" => self.content = Some(text(meta)?),
            "default" => {
                self.default = true;
                skip_value(meta)?;
            }
            "skip" => self.skip.set(true),
            "skip_deserializing" => self.skip.read = true,
            "skip_serializing" => self.skip.write = true,
            "skip_serializing_if" => {
                self.skip_if = true;
                skip_value(meta)?;
            }
            "with" => {
                self.opaque.set(true);
                skip_value(meta)?;
            }
            "deserialize_with" | "from" | "try_from" => {
                self.opaque.read = true;
                skip_value(meta)?;
            }
            "serialize_with" | "into" => {
                self.opaque.write = true;
                skip_value(meta)?;
            }
            "flatten" => self.flatten = true,
            "untagged" => self.untagged = true,
            "transparent" => self.transparent = true,
            "other" => self.other = true,
            _ => skip_value(meta)?,
        }
        Ok(())
    }
}

/// `name = "x"`, or `name(serialize = "x", deserialize = "y")`.
fn take_names(meta: &ParseNestedMeta<'_>, names: &mut Both<Option<String>>) -> syn::Result<()> {
    if meta.input.peek(syn::Token![=]) {
        names.set(Some(text(meta)?));
        return Ok(());
    }
    meta.parse_nested_meta(|inner| {
        let name = text(&inner)?;
        if inner.path.is_ident("deserialize") {
            names.read = Some(name);
        } else {
            names.write = Some(name);
        }
        Ok(())
    })
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<String> {
    Ok(meta.value()?.parse::<syn::LitStr>()?.value())
}

/// Reads past the value of an attribute that is of no interest.
fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(syn::Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        meta.parse_nested_meta(|inner| skip_value(&inner))?;
    }
    Ok(())
}

/// The documentation comment, lines joined as Markdown joins them.
pub(crate) fn documentation(attributes: &[Attribute]) -> Option<String> {
    let lines =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        });
    let text = lines.map(|line| if line.is_empty() { "\n".to_owned() } else { line }).collect::<Vec<_>>().join(" ");
    let text = text.replace(" \n ", "\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Whether a type derives a trait, so that its form is the one that its definition shows.
pub(crate) fn derives(attributes: &[Attribute], name: &str) -> bool {
    let mut found = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.segments.last().is_some_and(|segment| segment.ident == name);
            Ok(())
        });
    }
    found
}
