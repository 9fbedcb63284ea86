#!/usr/bin/env bash
# Every check of the project, on a machine with nothing but Rust and Debian's basics. Ends with how many passed.
set -euo pipefail
cd "$(dirname "$0")"

# Build outputs live in the user's cache, so that a fresh clone need not build everything again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sumout/target}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0

step() {
  printf '\n== %s\n' "$*"
  "$@"
  passed=$((passed + 1))
}

# Runs tests, shows them, and adds up what passed. The exit status is cargo's (pipefail).
tests() {
  printf '\n== %s\n' "$*"
  "$@" 2>&1 | tee "$log"
  local count
  count=$(awk '/^test result: ok\./ { n += $4 } END { print n + 0 }' "$log")
  passed=$((passed + count))
}

# Runs a script of tests and adds up the lines that say ok.
scripts() {
  printf '\n== %s\n' "$*"
  "$@" 2>&1 | tee "$log"
  passed=$((passed + $(grep -c '^ok ' "$log")))
}

# Installs packages of Debian unless the program is there.
need() {
  command -v "$1" >/dev/null && return
  step apt-get update -qq
  step apt-get install -y -qq "${@:2}"
}

need cc gcc libc6-dev
command -v cargo >/dev/null || { echo "Rust is needed: see https://rustup.rs" >&2; exit 1; }

step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets --locked -- -D warnings
tests cargo test --release --workspace --locked

# The service beside other people's programs: pyarrow and schemathesis from PyPI, Chromium from Debian.
need chromedriver chromium chromium-driver
need python3 python3 python3-venv
venv="${XDG_CACHE_HOME:-$HOME/.cache}/sumout/venv-serve"
if ! "$venv/bin/python" -c 'import pyarrow, schemathesis' 2>/dev/null; then
  python3 -m venv "$venv" || { need python3-venv python3-venv; python3 -m venv --clear "$venv"; }
  step "$venv/bin/pip" install -q pyarrow==26.0.1 schemathesis==4.32.5
fi
step cargo build --release --locked
export SUMOUT="$CARGO_TARGET_DIR/release/sumout"
scripts "$venv/bin/python" web/test/api.py
scripts "$venv/bin/python" web/test/page.py
RUSTDOCFLAGS="-D warnings" step cargo doc --release --workspace --no-deps --locked

printf '\n%d passed, 0 failed\n' "$passed"
