//! Reads a function's signature from its tokens.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// A function, as far as a tool needs to know it.
pub(crate) struct Signature {
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<Parameter>,
    /// The function itself, without the attributes on its parameters, which rustc does not know.
    pub(crate) function: TokenStream,
}

/// One parameter.
pub(crate) struct Parameter {
    /// `#[serde(...)]` and documentation, for the field.
    pub(crate) attributes: TokenStream,
    pub(crate) name: Ident,
    /// The type that is read; of `&str` that is `String`.
    pub(crate) owned_type: TokenStream,
    /// Whether the function takes a reference to it.
    pub(crate) by_reference: bool,
}

/// Why a function is no tool.
pub(crate) struct SignatureError {
    pub(crate) message: String,
    pub(crate) span: Span,
}

fn error<T>(span: Span, message: &str) -> Result<T, SignatureError> {
    Err(SignatureError { message: message.to_owned(), span })
}

/// Reads a function.
pub(crate) fn read(item: TokenStream) -> Result<Signature, SignatureError> {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let Some(start) = tokens.iter().position(|token| is_ident(token, "fn")) else {
        return error(Span::call_site(), "`#[skillz::tool]` belongs on a function");
    };
    if let Some(token) = tokens[..start].iter().find(|token| is_ident(token, "async")) {
        return error(token.span(), "A tool's function cannot be async: skillz's services wait by themselves");
    }
    let Some(TokenTree::Ident(name)) = tokens.get(start + 1) else {
        return error(tokens[start].span(), "A function has a name");
    };
    if name.to_string() == "main" {
        return error(name.span(), "Call the function something else, such as `run`: the tool's `main` is made around it");
    }
    let Some(TokenTree::Group(group)) = tokens.get(start + 2) else {
        return error(name.span(), "A tool's function cannot be generic: its arguments come from outside, with one type each");
    };
    let mut parameters = Vec::new();
    let mut plain = TokenStream::new();
    for part in split(group.stream()) {
        let parameter = read_parameter(part, &mut plain)?;
        parameters.push(parameter);
    }
    let mut rewritten = Group::new(Delimiter::Parenthesis, plain);
    rewritten.set_span(group.span());
    let mut function: TokenStream = tokens[..start + 2].iter().cloned().collect();
    function.extend([TokenTree::Group(rewritten)]);
    function.extend(tokens[start + 3..].iter().cloned());
    Ok(Signature { name: name.clone(), parameters, function })
}

/// Reads one parameter, and writes it without attributes to `plain`.
fn read_parameter(part: Vec<TokenTree>, plain: &mut TokenStream) -> Result<Parameter, SignatureError> {
    let mut rest = part.as_slice();
    let mut attributes = TokenStream::new();
    while let [TokenTree::Punct(hash), TokenTree::Group(group), tail @ ..] = rest {
        if hash.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
            break;
        }
        attributes.extend(rest[..2].iter().cloned());
        rest = tail;
    }
    plain.extend(rest.iter().cloned());
    plain.extend([TokenTree::Punct(Punct::new(',', Spacing::Alone))]);
    if let [first, tail @ ..] = rest {
        if is_ident(first, "mut") {
            rest = tail;
        }
    }
    let [TokenTree::Ident(name), TokenTree::Punct(colon), kind @ ..] = rest else {
        let span = rest.first().map_or_else(Span::call_site, TokenTree::span);
        return error(span, "A tool's parameters are plain names with a type, such as `text: String`");
    };
    if colon.as_char() != ':' || kind.is_empty() {
        return error(name.span(), "A tool's parameters are plain names with a type, such as `text: String`");
    }
    let (owned_type, by_reference) = owned(kind)?;
    Ok(Parameter { attributes, name: name.clone(), owned_type, by_reference })
}

/// The type that can be read where the function wants a reference.
fn owned(kind: &[TokenTree]) -> Result<(TokenStream, bool), SignatureError> {
    let [TokenTree::Punct(ampersand), target @ ..] = kind else { return Ok((kind.iter().cloned().collect(), false)) };
    if ampersand.as_char() != '&' {
        return Ok((kind.iter().cloned().collect(), false));
    }
    match target {
        [TokenTree::Punct(quote), ..] if quote.as_char() == '\'' => {
            error(ampersand.span(), "A tool's parameters cannot have a lifetime; take an owned type, such as `String`")
        }
        [first, ..] if is_ident(first, "mut") => {
            error(ampersand.span(), "A tool's parameters cannot be mutable references; take an owned type")
        }
        [name] if is_ident(name, "str") => Ok((spanned("::std::string::String", name.span()), true)),
        [TokenTree::Group(slice)] if slice.delimiter() == Delimiter::Bracket => {
            let mut tokens = spanned("::std::vec::Vec<", slice.span());
            tokens.extend(slice.stream());
            tokens.extend(spanned(">", slice.span()));
            Ok((tokens, true))
        }
        target => Ok((target.iter().cloned().collect(), true)),
    }
}

/// Reads tokens and gives them a place, for rustc's messages.
fn spanned(text: &str, span: Span) -> TokenStream {
    let tokens: TokenStream = text.parse().unwrap_or_default();
    let place = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    tokens.into_iter().map(place).collect()
}

/// Splits parameters at their commas. Those inside `<...>` do not count; brackets are groups by themselves.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    let mut depth = 0_i32;
    let mut arrow = false;
    for token in tokens {
        let character = match &token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
        match character {
            '<' => depth += 1,
            '>' if !arrow => depth -= 1,
            ',' if depth == 0 => {
                parts.push(Vec::new());
                continue;
            }
            _ => {}
        }
        arrow = character == '-';
        if let Some(part) = parts.last_mut() {
            part.push(token);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == name)
}
