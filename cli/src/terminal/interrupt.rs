//! Ctrl-C: unfinished files are removed, then the program ends. A training run can finish its step
//! first.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use sumout_data::unfinished_files;

/// The exit code of an interrupted program: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// A signal that comes again this soon is the first one: `timeout` sends its signal to the program and
/// then to its group, of which the program is one.
const SAME: Duration = Duration::from_secs(2);

/// What a signal does now.
static STATE: Mutex<State> = Mutex::new(State {
    on_request: None,
    requested: None,
});

/// What a signal does now.
struct State {
    /// While signals are deferred, what the program says to the first one.
    on_request: Option<&'static str>,
    /// When the first one came.
    requested: Option<Instant>,
}

/// What a signal is.
#[derive(Debug, PartialEq)]
enum Signal {
    /// A request, to which the program says this.
    Request(&'static str),
    /// The same request again.
    Same,
    /// The end.
    End,
}

impl State {
    /// What a signal is that comes at this time.
    fn signal(&mut self, now: Instant) -> Signal {
        match (self.on_request, self.requested) {
            (_, Some(first)) if now.duration_since(first) < SAME => Signal::Same,
            (Some(words), None) => {
                self.requested = Some(now);
                Signal::Request(words)
            }
            _ => Signal::End,
        }
    }
}

/// The state, also after a panic.
fn with_state<T>(read: impl FnOnce(&mut State) -> T) -> T {
    read(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A run that was stopped on request: not an error, but not finished. Says how to continue.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// While this is alive, the first Ctrl-C is a request, see [`requested`]; a later one ends the
/// program.
#[derive(Debug)]
pub struct Deferred(());

/// Defers Ctrl-C; the program says these words when it comes.
pub fn defer(words: &'static str) -> Deferred {
    with_state(|state| state.on_request = Some(words));
    Deferred(())
}

impl Drop for Deferred {
    fn drop(&mut self) {
        with_state(|state| state.on_request = None);
    }
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    with_state(|state| state.requested.is_some())
}

/// From now on, Ctrl-C and SIGTERM remove unfinished files, then end the program.
pub fn install() {
    // This can fail only if there is a handler already; then that one does the work.
    let _ = ctrlc::set_handler(on_signal);
}

fn on_signal() {
    match with_state(|state| state.signal(Instant::now())) {
        Signal::Request(words) => say(words),
        Signal::Same => {}
        Signal::End => unfinished_files::remove_all_and(|| std::process::exit(INTERRUPTED.into())),
    }
}

/// A line on standard error; on a terminal, below the "^C" and the bar that are there.
fn say(words: &str) {
    let below = if io::stderr().is_terminal() { "\n" } else { "" };
    let _ = writeln!(io::stderr(), "{below}{words}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_is_one_request() {
        let start = Instant::now();
        let mut state = State {
            on_request: None,
            requested: None,
        };
        assert_eq!(state.signal(start), Signal::End, "nothing is deferred");
        state.on_request = Some("stopping");
        assert_eq!(state.signal(start), Signal::Request("stopping"));
        let later = |ms| start + Duration::from_millis(ms);
        assert_eq!(state.signal(later(1)), Signal::Same);
        state.on_request = None;
        assert_eq!(state.signal(later(1999)), Signal::Same, "it is stopping");
        assert_eq!(state.signal(later(2001)), Signal::End);
    }
}
