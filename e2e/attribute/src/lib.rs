//! The attribute of a whole-system test, which makes it known to `e2e::harness`.

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input};

/// A whole-system test: a function without arguments, `async` or not, that fails by panicking. With `#[ignore = "why"]` it runs only when
/// somebody asks for it by `--ignored` or `--include-ignored`, as with `#[test]`. `#[e2e::test(real)]` is one that needs real programs.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = parse_macro_input!(item as ItemFn);
    let needs_real = match arguments.to_string().as_str() {
        "" => false,
        "real" => true,
        _ => {
            let why = "#[e2e::test] takes no argument but `real`: e2e/src/harness/gate.rs lists the tests of the gate";
            return refuse(&function, why);
        }
    };
    let all = function.attrs.len();
    function.attrs.retain(|attribute| !attribute.path().is_ident("ignore"));
    let is_ignored = function.attrs.len() < all;
    if function.sig.asyncness.take().is_some() {
        let body = &function.block;
        function.block =
            syn::parse_quote!({ ::e2e::shared::RUNTIME.block_on(::e2e::shared::in_time(async #body)) });
    }
    let name = &function.sig.ident;
    let text = name.to_string();
    quote! {
        #function

        ::e2e::harness::inventory::submit! {
            ::e2e::harness::Test { module: module_path!(), name: #text, is_ignored: #is_ignored, needs_real: #needs_real, run: #name }
        }
    }
    .into()
}

fn refuse(function: &ItemFn, why: &str) -> TokenStream {
    syn::Error::new_spanned(&function.sig.ident, why).into_compile_error().into()
}
