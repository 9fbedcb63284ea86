#!/usr/bin/env bash
# Builds the engine for the browser: the npm package and the site that needs no service.
#
#   web/build.sh [FOLDER [MODEL]]      FOLDER/npm and FOLDER/site; FOLDER is web/dist unless given
#
# MODEL is the model of digits that the page opens with; without one, the demo's model is trained, which takes minutes.
# Needs the target wasm32-unknown-unknown of rustup, and the command wasm-bindgen of the version in web/Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${1:-web/dist}"
target="${CARGO_TARGET_DIR:-target}"
sumout="${SUMOUT:-cargo run --quiet --release --locked --}"

RUSTFLAGS="-C target-feature=+simd128" \
  cargo build --quiet --locked --profile web -p sumout-web --target wasm32-unknown-unknown
rm -rf "$out"
mkdir -p "$out/npm" "$out/site"
wasm-bindgen --target web --remove-name-section --remove-producers-section --out-dir "$out/npm" \
  "$target/wasm32-unknown-unknown/web/sumout_web.wasm"
wasm="$out/npm/sumout_web_bg.wasm"
cp web/npm/* LICENSE-MIT LICENSE-APACHE "$out/npm"

# The page of the service; only how it asks is another module, and addresses do not begin with a slash.
cp serve/web/*.js serve/web/style.css report/src/base.css "$out/site"
cp web/site/* "$out/npm/sumout_web.js" "$wasm" "$out/site"
open_model='<label class="button" for="model-file">Open a model</label><input type="file" id="model-file" accept=".sumout">'
sed -E -e 's#(href|src)="/([a-z]+\.(css|js))"#\1="\2"#' \
  -e 's|</head>|<link rel="stylesheet" href="local.css">\n<script type="module" src="local.js"></script>\n</head>|' \
  -e "s|    <button id=\"theme\"|    $open_model\n&|" \
  -e 's|^<footer>.*</footer>|<footer><p>All of this runs in your browser. Models and tables that you open never leave your machine.</p></footer>|' \
  serve/web/index.html > "$out/site/index.html"
model="${2:-}"
if [ -z "$model" ]; then
  $sumout demo --out "$out/demo"
  model="$out/demo/model.sumout"
fi
$sumout compress "$model" --out "$out/site/digits.sumout"
rm -rf "$out/demo"
printf 'wasm %d kB, %d kB compressed; model %d kB\n' \
  $(($(wc -c < "$wasm") / 1000)) $(($(gzip -9 -c "$wasm" | wc -c) / 1000)) $(($(wc -c < "$out/site/digits.sumout") / 1000))
