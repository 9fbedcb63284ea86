//! The crate `parquet` panics at some damaged files: such a panic becomes an error, and nothing is printed.

use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught here.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, or the words of its error or panic. What it worked on must not be used after a panic.
pub fn caught<T, E: Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| unless_caught(&usual, panic)));
    });
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(words)?.map_err(|error| error.to_string())
}

/// Lets the usual hook speak, but not of panics that are caught here.
fn unless_caught(usual: &dyn Fn(&PanicHookInfo<'_>), panic: &PanicHookInfo<'_>) {
    if !IS_CAUGHT.get() {
        usual(panic);
    }
}

/// What a panic says.
fn words(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_words() {
        assert_eq!(caught(|| Ok::<_, String>(7)), Ok(7));
        assert_eq!(caught(|| Err::<(), _>("wrong")), Err("wrong".into()));
        let no = || -> Result<(), String> { panic!("no") };
        assert_eq!(caught(no), Err("no".into()));
        let number = 8;
        let many = || -> Result<(), String> { panic!("{number} is too many") };
        assert_eq!(caught(|| caught(many)), Err("8 is too many".into()));
        assert!(!IS_CAUGHT.get());
    }
}
