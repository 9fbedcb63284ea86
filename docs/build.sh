#!/usr/bin/env bash
# Builds the whole site and checks its links: the book with the notebooks and their results, the API of Rust and Python,
# a report, and the live page.
#
#   docs/build.sh [FOLDER]      FOLDER is target/site unless given
#
# Tools that are not there are installed: mdBook and wasm-bindgen beside the build outputs, Python's packages in an
# environment of their own. What was built before can be given: PYTHON, a Python with sumout[site]; WEB, the page that web/build.sh makes; SUMOUT, the command.
set -euo pipefail
cd "$(dirname "$0")/.."
site="${1:-target/site}"
target="${CARGO_TARGET_DIR:-target}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$target/tools/bin:$PATH"

tool() { # a program that cargo installs, of a version; hardly optimised, which is faster
  command -v "$1" >/dev/null || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install --quiet --locked "$2" --root "$target/tools" --target-dir "$target/tools/target" "${@:3}"
}

python="${PYTHON:-$work/python/bin/python}"
if [ -z "${PYTHON:-}" ]; then
  python3 -m venv "$work/python"
  "$python" -m pip install --quiet --disable-pip-version-check './python[site]'
fi
tool mdbook mdbook@0.5.4 --no-default-features --features search
if [ -z "${WEB:-}" ]; then
  bindgen=$(sed -n 's/^wasm-bindgen = "=\([0-9.]*\)".*/\1/p' web/Cargo.toml)
  tool wasm-bindgen "wasm-bindgen-cli@$bindgen" --no-default-features --bin wasm-bindgen
  web/build.sh "$work/web"
  WEB="$work/web/site"
fi
sumout="${SUMOUT:-cargo run --quiet --release --locked --}"

# The book: the notebooks are run and become pages, and so do the experiments.
cp -r docs "$work/docs"
rm -r "$work/docs/build.sh" "$work/docs/check_links.py" "$work/docs/python-theme"
"$python" -m nbconvert --execute --to markdown --log-level ERROR docs/notebooks/*.ipynb --output-dir "$work/docs/notebooks" 2> "$work/log" || { cat "$work/log"; exit 1; }
for page in experiments experiments/tuning; do
  mkdir -p "$work/docs/$page"
  sed 's|README\.md)|index.md)|g' "$page/README.md" > "$work/docs/$page/index.md"
done
cp -r experiments/figures "$work/docs/experiments"
for name in $(sed -n 's/.*(\(.*\)\.ipynb).*/\1/p' docs/notebooks/index.md); do
  title=$(sed -n 's/^# //p' "$work/docs/notebooks/$name.md" | head -n 1)
  printf '  - [%s](notebooks/%s.md)\n' "$title" "$name"
done > "$work/pages"
sed -i -e "/notebooks\/index.md/r $work/pages" \
  -e 's|^- \[Benchmarks: tables\].*|- [Experiments: images](experiments/index.md)\n  - [Tuning](experiments/tuning/index.md)\n&|' "$work/docs/SUMMARY.md"
cat >> "$work/docs/index.md" <<END

## Also on this site

- [The live page](live/index.html): erase pixels of a digit, or open a model and a table of your own; all of it runs in your browser.
- [A report](report.html) as \`sumout report\` writes it, here about penguins.
- The API of [Rust](rust/sumout/index.html) and [Python](python/sumout.html).
END
rm -rf "$site"
mkdir -p "$site"
site=$(cd "$site" && pwd)
mdbook build "$work/docs" --dest-dir "$site"

# The API of both languages, a report, and the live page.
rm -rf "$target/doc"
cargo doc --quiet --release --workspace --no-deps --locked
cp -r "$target/doc" "$site/rust"
echo '<meta http-equiv="refresh" content="0; url=sumout/index.html">' > "$site/rust/index.html"
"$python" -m pdoc --docformat numpy --template-directory docs/python-theme --output-directory "$site/python" sumout '!sumout._engine'
$sumout demo --table --out "$work/tour" > /dev/null
$sumout report "$work/tour/penguins.sumout" --data "$work/tour/new.csv" --out "$site/report.html"
cp -r "$WEB" "$site/live"
python3 docs/check_links.py "$site"
