#!/usr/bin/env bash
# Every check of the project, on a machine with nothing but Rust and Debian's basics. Ends with how many passed.
set -euo pipefail
cd "$(dirname "$0")"

# Build outputs live in the user's cache, so that a fresh clone need not build everything again.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sumout/target}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log="$work/log"
passed=0
untested=""

# Says what comes, and the minutes and seconds until now.
say() {
  printf '\n== %02d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
}

step() {
  say "$@"
  "$@"
  passed=$((passed + 1))
}

# Runs tests, shows them, and adds up what passed, of cargo or of pytest. The exit status is theirs (pipefail).
tests() {
  say "$@"
  "$@" 2>&1 | tee "$log"
  if grep -q 'NOT TESTED on a GPU' "$log"; then # they have said so, and do not count
    untested="; not tested: the GPU, of which there is none"
    return
  fi
  local count
  count=$(awk '/^test result: ok\./ { n += $4 } / passed.* in [0-9.]+s/ { for (i = 2; i <= NF; i++) if ($i ~ /^passed/) n += $(i - 1) } END { print n + 0 }' "$log")
  passed=$((passed + count))
}

# Runs a script of tests and adds up the lines that say ok.
scripts() {
  say "$@"
  "$@" 2>&1 | tee "$log"
  passed=$((passed + $(grep -c '^ok ' "$log")))
}

# Installs packages of Debian unless the program is there.
need() {
  command -v "$1" >/dev/null && return
  step apt-get update -qq
  step apt-get install -y -qq "${@:2}"
}

# A fresh Python environment of that name with packages in it.
environment() {
  if ! python3 -m venv "$work/$1" >/dev/null 2>&1; then
    step apt-get update -qq
    step apt-get install -y -qq python3 python3-venv
    step python3 -m venv --clear "$work/$1"
  fi
  [ $# -eq 1 ] || step "$work/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

need cc gcc libc6-dev
command -v cargo >/dev/null || { echo "Rust is needed: see https://rustup.rs" >&2; exit 1; }

step cargo fmt --all --check
step cargo clippy --release --workspace --all-targets --locked -- -D warnings
tests cargo test --release --workspace --locked
for example in engine/examples/*.rs; do step "$CARGO_TARGET_DIR/release/examples/$(basename "$example" .rs)"; done
export SUMOUT="$CARGO_TARGET_DIR/release/sumout"
step cargo check --release --locked
# With the GPU: it builds without a CUDA toolkit, and without a GPU its tests say so.
step cargo clippy --release --locked -p sumout -p sumout-cli -p sumout-python --features cuda -- -D warnings
profile=dev # without a GPU there is nothing to run, and this builds faster
! nvidia-smi --list-gpus >/dev/null 2>&1 || profile=release
CARGO_PROFILE_DEV_DEBUG=0 tests cargo test --profile $profile --locked -p sumout --features cuda --test devices_agree -- --nocapture
# With Parquet; not optimised, which builds twice as fast.
CARGO_PROFILE_DEV_DEBUG=0 tests cargo test --locked -p sumout-data --features parquet --lib parquet
CARGO_PROFILE_DEV_DEBUG=0 tests cargo test --locked -p sumout-fuzz --no-default-features --features parquet --test mutated parquet

# What would be published: packages hold all that they need, and their descriptions are whole.
step cargo publish --quiet --workspace --dry-run --no-verify --locked --allow-dirty

# The tool that joins the page and the engine in the browser, built beside the next tests and kept beside the build outputs.
tools="$CARGO_TARGET_DIR/tools"
bindgen=$(sed -n 's/^wasm-bindgen = "=\([0-9.]*\)".*/\1/p' web/Cargo.toml)
prepare_bindgen() {
  "$tools/bin/wasm-bindgen" --version 2>/dev/null | grep -qF "$bindgen" && return
  CARGO_PROFILE_RELEASE_OPT_LEVEL=1 nice cargo install --quiet --force "wasm-bindgen-cli@$bindgen" \
    --no-default-features --bin wasm-bindgen --root "$tools" --target-dir "$tools/target"
}
prepare_bindgen > "$work/bindgen.log" 2>&1 &
bindgen_ready=$!

# The service beside other people's programs: pyarrow and schemathesis from PyPI, Chromium from Debian.
need chromedriver chromium chromium-driver
environment serve pyarrow==26.0.1 schemathesis==4.32.5

scripts "$work/serve/bin/python" serve/web/test/api.py
scripts "$work/serve/bin/python" serve/web/test/page.py

# The environment of the rivals is made beside all that follows. PyTorch's wheel of this name is large (3 GB with what it
# needs), so it lives beside the build outputs; a pip that is set up for PyTorch's CPU wheels takes those instead.
rivals="$CARGO_TARGET_DIR/rivals"
prepare_rivals() {
  cmp -s experiments/rivals/requirements.txt "$rivals/requirements.txt" && return
  python3 -m venv --clear "$rivals"
  "$rivals/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir -r experiments/rivals/requirements.txt
  cp experiments/rivals/requirements.txt "$rivals/"
}
prepare_rivals > "$work/rivals.log" 2>&1 &
rivals_ready=$!

# The engine in the browser: the page without a service, beside the native service.
wait "$bindgen_ready" || { cat "$work/bindgen.log" >&2; exit 1; }
rustup target list --installed | grep -q wasm32-unknown-unknown || step rustup target add wasm32-unknown-unknown
step "$SUMOUT" train mnist-ht --data digits --steps 60 --out "$work/digits.sumout"
PATH="$tools/bin:$PATH" step web/build.sh "$work/web" "$work/digits.sumout"
scripts python3 web/test/site.py "$work/web"

# The Python package as a wheel for any Linux: built once, by a compiler that PyPI has too, and installed where there is none.
environment build maturin==1.16.0 ziglang==0.17.0 ruff==0.17.5
step "$work/build/bin/ruff" check python
step "$work/build/bin/ruff" format --check python
PATH="$work/build/bin:$PATH" step maturin build --quiet --release --zig --locked --manifest-path python/Cargo.toml --out "$work/wheels"
# Dask and Spark are among what its tests need.
need java openjdk-17-jre-headless
environment python
PATH="$work/python/bin" step pip install --quiet --disable-pip-version-check "$(echo "$work"/wheels/sumout-*manylinux*.whl)[test,site]"
# Two files at a time: most of them wait for one core.
tests "$work/python/bin/python" -m pytest --quiet --numprocesses 2 --dist loadfile --durations=8 -p no:cacheprovider python/tests

# The site: the documentation of the crates without a warning, all notebooks, all links.
PYTHON="$work/python/bin/python" WEB="$work/web/site" RUSTDOCFLAGS="-D warnings" step docs/build.sh "$work/site"

# The paper's rivals, a few steps each, two at a time: each has one thread.
wait "$rivals_ready" || { cat "$work/rivals.log" >&2; exit 1; }
scripts "$rivals/bin/python" experiments/rivals/test_holes.py
rival_scripts="lenet resnet nice gsn dpm mpdbm spn norb speech few_labels"
step xargs --max-procs 2 -I NAME "$rivals/bin/python" experiments/rivals/NAME.py --quick <<< "${rival_scripts// /$'\n'}"

say "the end"
printf '\n%d passed, 0 failed%s\n' "$passed" "$untested"
