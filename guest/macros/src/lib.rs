//! The attribute `#[skillz::tool]`: makes a program out of a function.
//!
//! The signature is read token by token, without a parser crate: a tool's first build waits for everything that
//! this crate depends on.

extern crate proc_macro;

mod signature;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use signature::{Parameter, Signature};

/// Turns a function into a tool: its parameters are the arguments, by name, and what it returns is the result.
///
/// Parameters may be any type that serde reads; `Option` ones may be left out, as may those with
/// `#[serde(default)]`. A documentation comment on a parameter describes it. The function returns anything that
/// serde writes, or a `Result` of it with an error that can be displayed.
#[proc_macro_attribute]
pub fn tool(_options: TokenStream, item: TokenStream) -> TokenStream {
    match signature::read(item.clone()) {
        Ok(signature) => expand(&signature),
        Err(error) => {
            let mut tokens = compile_error(&error.message, error.span);
            tokens.extend(item);
            tokens
        }
    }
}

/// The function as it was, and `main` around it.
fn expand(signature: &Signature) -> TokenStream {
    let mut fields = TokenStream::new();
    let mut passed = TokenStream::new();
    for parameter in &signature.parameters {
        fields.extend(field(parameter));
        passed.extend(argument(parameter));
    }
    let structure = Group::new(Delimiter::Brace, fields);
    let mut call = TokenStream::from(TokenTree::Ident(signature.name.clone()));
    call.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, passed))]);

    let mut body = source(
        "use ::skillz::__private::ReturnedValue as _;
         #[derive(::skillz::__private::serde::Deserialize)]
         #[serde(crate = \"::skillz::__private::serde\")]
         struct __SkillzArguments",
    );
    body.extend([TokenTree::Group(structure)]);
    let mut reply = source("::skillz::__private::Returned");
    reply.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, call))]);
    reply.extend(source(".reply()"));
    let mut closure = source("|__skillz_arguments: __SkillzArguments|");
    closure.extend([TokenTree::Group(Group::new(Delimiter::Brace, reply))]);
    body.extend(source("::skillz::__private::run"));
    body.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, closure))]);

    let mut tokens = signature.function.clone();
    tokens.extend(source("fn main()"));
    tokens.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    tokens
}

/// A field of the arguments, with the type's own tokens, so that errors point at them.
fn field(parameter: &Parameter) -> TokenStream {
    let mut tokens = parameter.attributes.clone();
    tokens.extend([TokenTree::Ident(parameter.name.clone()), punct(':')]);
    tokens.extend(parameter.owned_type.clone());
    tokens.extend([punct(',')]);
    tokens
}

/// The argument passed to the function.
fn argument(parameter: &Parameter) -> TokenStream {
    let mut tokens = TokenStream::new();
    if parameter.by_reference {
        tokens.extend([punct('&')]);
    }
    tokens.extend(source("__skillz_arguments."));
    tokens.extend([TokenTree::Ident(parameter.name.clone()), punct(',')]);
    tokens
}

fn punct(character: char) -> TokenTree {
    TokenTree::Punct(Punct::new(character, Spacing::Alone))
}

/// Reads tokens that this crate itself wrote.
fn source(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|_| compile_error("The attribute `skillz::tool` is broken", Span::call_site()))
}

fn compile_error(message: &str, span: Span) -> TokenStream {
    let mut literal = TokenTree::Literal(Literal::string(message));
    literal.set_span(span);
    let mut group = TokenTree::Group(Group::new(Delimiter::Brace, TokenStream::from(literal)));
    group.set_span(span);
    let mut bang = punct('!');
    bang.set_span(span);
    TokenStream::from_iter([TokenTree::Ident(Ident::new("compile_error", span)), bang, group])
}
