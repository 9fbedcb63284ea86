#!/usr/bin/env bash
# Every check of the project, on a machine with nothing but Rust and Debian's basics. Ends with how many passed.
set -euo pipefail
cd "$(dirname "$0")"

# Build outputs live in the user's cache, so that a fresh clone need not build everything again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sumout/target}"
log=$(mktemp)
venv=$(mktemp -d)
trap 'rm -rf "$log" "$venv"' EXIT
passed=0

step() {
  printf '\n== %s\n' "$*"
  "$@"
  passed=$((passed + 1))
}

# Runs tests, shows them, and adds up what passed, of cargo or of pytest. The exit status is theirs (pipefail).
tests() {
  printf '\n== %s\n' "$*"
  "$@" 2>&1 | tee "$log"
  local count
  count=$(awk '/^test result: ok\./ { n += $4 } / passed.* in [0-9.]+s/ { for (i = 2; i <= NF; i++) if ($i ~ /^passed/) n += $(i - 1) } END { print n + 0 }' "$log")
  passed=$((passed + count))
}

if ! command -v cc >/dev/null; then
  step apt-get update -qq
  step apt-get install -y -qq gcc libc6-dev
fi
command -v cargo >/dev/null || { echo "Rust is needed: see https://rustup.rs" >&2; exit 1; }

step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets --locked -- -D warnings
tests cargo test --release --workspace --locked
# With the GPU: it builds without a CUDA toolkit, and without a GPU its tests say so.
step cargo clippy --release --all-targets --locked -p sumout -p sumout-cli --features cuda -- -D warnings
tests cargo test --release --locked -p sumout --features cuda --test devices_agree -- --nocapture
RUSTDOCFLAGS="-D warnings" step cargo doc --release --workspace --no-deps --locked

# The Python package, built and installed in a fresh environment as a user would.
if ! python3 -m venv "$venv" >/dev/null 2>&1; then
  step apt-get update -qq
  step apt-get install -y -qq python3-venv
  step python3 -m venv "$venv"
fi
step "$venv/bin/pip" install --quiet --disable-pip-version-check "./python[test]"
step cargo build --release --locked
SUMOUT="$CARGO_TARGET_DIR/release/sumout" tests "$venv/bin/python" -m pytest --quiet -p no:cacheprovider python/tests

printf '\n%d passed, 0 failed\n' "$passed"
