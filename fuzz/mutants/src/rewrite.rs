//! Source files with a switch for each mutant.

use anyhow::{Context, Result};
use quote::quote;
use std::fmt;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, BinOp, Block, Expr, ExprBinary, ImplItemFn, ItemConst, ItemFn, ItemMod, ItemStatic,
    Pat, ReturnType, Signature, Type, UnOp, parse_quote,
};

/// One change.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub id: usize,
    path: PathBuf,
    line: usize,
    column: usize,
    change: String,
}

impl Mutant {
    /// The same however many others there are.
    pub fn key(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.path.display(),
            self.line,
            self.column,
            self.change
        )
    }
}

/// A file with switches.
pub struct Rewritten {
    pub code: String,
    pub found: Vec<Mutant>,
}

/// Puts switches into a file; numbers begin after `first`, those of `refused` are left out.
pub fn file(path: &Path, text: &str, first: usize, refused: &[String]) -> Result<Rewritten> {
    let mut tree = syn::parse_file(text).with_context(|| path.display().to_string())?;
    let mut switches = Switches {
        path,
        first,
        refused,
        found: Vec::new(),
    };
    switches.visit_file_mut(&mut tree);
    Ok(Rewritten {
        code: prettyplease::unparse(&tree),
        found: switches.found,
    })
}

/// What reads the environment, for the end of a library. `MUTANT` has a number; instead, `MUTANT_REACHED` has the name of
/// a file to which the numbers that were asked for are written at the end.
pub const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, unsafe_code)]
pub mod mutant {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    const RECORD: usize = usize::MAX;
    static ACTIVE: AtomicUsize = AtomicUsize::new(0);
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    #[used]
    #[unsafe(link_section = ".init_array")]
    static BEGIN: extern "C" fn() = begin;
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static END: extern "C" fn() = end;
    extern "C" fn begin() {
        let id = std::env::var("MUTANT").ok().and_then(|id| id.parse().ok());
        let record = std::env::var_os("MUTANT_REACHED").map(|_| RECORD);
        ACTIVE.store(record.or(id).unwrap_or(0), Relaxed);
    }
    extern "C" fn end() {
        if let Some(path) = std::env::var_os("MUTANT_REACHED") {
            let reached = |id: &usize| REACHED[*id].load(Relaxed);
            let ids: Vec<String> = (0..REACHED.len()).filter(reached).map(|id| id.to_string()).collect();
            std::fs::write(path, ids.join("\n")).unwrap();
        }
    }
    #[inline(always)]
    pub fn is(id: usize) -> bool {
        let active = ACTIVE.load(Relaxed);
        active == id || active == RECORD && record(id)
    }
    #[cold]
    #[inline(never)]
    fn record(id: usize) -> bool {
        REACHED[id].store(true, Relaxed);
        false
    }
}
"#;

struct Switches<'a> {
    path: &'a Path,
    first: usize,
    refused: &'a [String],
    found: Vec<Mutant>,
}

impl Switches<'_> {
    /// The number of a new mutant; none where it was refused.
    fn add(&mut self, at: proc_macro2::Span, change: String) -> Option<usize> {
        let (path, start) = (self.path.to_owned(), at.start());
        let id = self.first + self.found.len() + 1;
        let mutant = Mutant {
            id,
            path,
            line: start.line,
            column: start.column + 1,
            change,
        };
        if self.refused.contains(&mutant.key()) {
            return None;
        }
        self.found.push(mutant);
        Some(id)
    }

    /// `old`, or `new` where the mutant is active.
    fn switch(&mut self, at: proc_macro2::Span, change: &str, old: Expr, new: Expr) -> Expr {
        match self.add(at, change.to_owned()) {
            Some(id) => parse_quote!((if crate::mutant::is(#id) { #new } else { #old })),
            None => old,
        }
    }

    /// Returns at once, with each value that the type may have.
    fn returns(&mut self, signature: &Signature, block: &mut Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        for value in values_of(&signature.output) {
            let shown = quote!(#value).to_string().replace(' ', "");
            if let Some(id) = self.add(
                signature.ident.span(),
                format!("{} returns {shown}", signature.ident),
            ) {
                block.stmts.insert(
                    0,
                    parse_quote!(if crate::mutant::is(#id) { return #value; }),
                );
            }
        }
    }
}

/// What a function may return instead; nothing where the type is not simple.
fn values_of(output: &ReturnType) -> Vec<Expr> {
    let ReturnType::Type(_, kind) = output else {
        return vec![parse_quote!(())];
    };
    let Type::Path(path) = &**kind else {
        return Vec::new();
    };
    match quote!(#path).to_string().replace(' ', "").as_str() {
        "bool" => vec![parse_quote!(true), parse_quote!(false)],
        "f32" | "f64" => vec![parse_quote!(0.0), parse_quote!(1.0), parse_quote!(-1.0)],
        "usize" | "u8" | "u32" | "u64" | "i32" | "i64" => vec![parse_quote!(0), parse_quote!(1)],
        "Result<()>" => vec![parse_quote!(Ok(()))],
        _ => Vec::new(),
    }
}

/// What takes the place of an operator, as `cargo mutants` has it.
fn others(op: &BinOp) -> Vec<BinOp> {
    match op {
        BinOp::Add(_) => vec![parse_quote!(-), parse_quote!(*)],
        BinOp::Sub(_) => vec![parse_quote!(+), parse_quote!(/)],
        BinOp::Mul(_) => vec![parse_quote!(+), parse_quote!(/)],
        BinOp::Div(_) => vec![parse_quote!(%), parse_quote!(*)],
        BinOp::Rem(_) => vec![parse_quote!(/), parse_quote!(+)],
        BinOp::And(_) => vec![parse_quote!(||)],
        BinOp::Or(_) => vec![parse_quote!(&&)],
        BinOp::Eq(_) => vec![parse_quote!(!=)],
        BinOp::Ne(_) => vec![parse_quote!(==)],
        BinOp::Lt(_) => vec![parse_quote!(==), parse_quote!(>), parse_quote!(<=)],
        BinOp::Gt(_) => vec![parse_quote!(==), parse_quote!(<), parse_quote!(>=)],
        BinOp::Le(_) => vec![parse_quote!(>)],
        BinOp::Ge(_) => vec![parse_quote!(<)],
        BinOp::AddAssign(_) => vec![parse_quote!(-=), parse_quote!(*=)],
        BinOp::SubAssign(_) => vec![parse_quote!(+=), parse_quote!(/=)],
        BinOp::MulAssign(_) => vec![parse_quote!(+=), parse_quote!(/=)],
        BinOp::DivAssign(_) => vec![parse_quote!(%=), parse_quote!(*=)],
        _ => Vec::new(),
    }
}

/// `let` in a condition cannot move.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

/// What the program itself does not have, or not in every build.
fn is_left_out(attributes: &[Attribute]) -> bool {
    let text = |attribute: &Attribute| quote!(#attribute).to_string().replace(' ', "");
    attributes
        .iter()
        .map(text)
        .any(|text| text.contains("#[cfg(") || text.contains("#[test]"))
}

impl VisitMut for Switches<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let plain = expr.clone(); // a mutant has no others in it
        visit_mut::visit_expr_mut(self, expr);
        match plain {
            Expr::Binary(both) if !has_let(&both.left) && !has_let(&both.right) => {
                for op in others(&both.op) {
                    let change = format!("{} to {}", shown(&both.op), shown(&op));
                    let new = Expr::Binary(ExprBinary { op, ..both.clone() });
                    *expr = self.switch(both.op.span(), &change, expr.clone(), new);
                }
            }
            Expr::Unary(one)
                if matches!(one.op, UnOp::Not(_) | UnOp::Neg(_))
                    && !matches!(*one.expr, Expr::Lit(_)) =>
            {
                let change = format!(
                    "without {}",
                    if matches!(one.op, UnOp::Not(_)) {
                        "!"
                    } else {
                        "-"
                    }
                );
                *expr = self.switch(one.span(), &change, expr.clone(), *one.expr);
            }
            _ => {}
        }
    }

    fn visit_item_fn_mut(&mut self, item: &mut ItemFn) {
        if is_left_out(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        visit_mut::visit_item_fn_mut(self, item);
        self.returns(&item.sig, &mut item.block);
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut ImplItemFn) {
        if is_left_out(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        visit_mut::visit_impl_item_fn_mut(self, item);
        self.returns(&item.sig, &mut item.block);
    }

    fn visit_item_mod_mut(&mut self, item: &mut ItemMod) {
        if !is_left_out(&item.attrs) {
            visit_mut::visit_item_mod_mut(self, item);
        }
    }

    // What must be known when it is compiled stays as it is.
    fn visit_item_const_mut(&mut self, _: &mut ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_generics_mut(&mut self, _: &mut syn::Generics) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_expr_repeat_mut(&mut self, repeat: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }
    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}
}

fn shown(op: &BinOp) -> String {
    quote!(#op).to_string()
}
