#!/usr/bin/env bash
# Measures the service on an idle machine:  serve/web/test/load.sh MODEL.sumout
# MODEL is of 28×28 images, such as mnist-ht.
# Needs wrk, curl, and a python3 with numpy and pyarrow (PYTHON chooses one). SECONDS_EACH (30): length of a run.
set -euo pipefail
model=$1
program=${SUMOUT:-cargo run --release --quiet --}
python=${PYTHON:-python3}
each=${SECONDS_EACH:-30}
rows=${ROWS:-100000}
work=$(mktemp -d)
$program serve "digits=$model" --listen 127.0.0.1:0 --log none > "$work/out" &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$work"' EXIT
until grep -q http "$work/out" 2>/dev/null; do sleep 0.1; done
base=$(grep -o 'http://[^ ]*' "$work/out")
pid=$(pgrep -P $server -x sumout || echo $server)

curl -s "$base/v1/examples?count=200" > "$work/digits.json"
"$python" - "$work" <<'EOF'
import json
import sys
rows = json.load(open(sys.argv[1] + "/digits.json"))["rows"]
with open(sys.argv[1] + "/bodies", "w") as file:
    file.writelines(json.dumps({"rows": [row["values"]]}) + "\n" for row in rows)
EOF
head -1 "$work/bodies" > "$work/one.json"
cat > "$work/one.lua" <<EOF
local requests = {}
function init()
  for body in io.lines("$work/bodies") do
    table.insert(requests, wrk.format("POST", "/v1/predict", { ["Content-Type"] = "application/json" }, body))
  end
end
local at = 0
function request()
  at = at % #requests + 1
  return requests[at]
end
EOF

echo "== one image per request (200 digits in turn), keep-alive, 64 clients"
wrk -t2 -c64 -d"${each}s" --latency -s "$work/one.lua" "$base/v1/predict"

echo "== four times as many clients; health checks at the same time"
wrk -t2 -c256 -d"${each}s" --latency -s "$work/one.lua" "$base/v1/predict" > "$work/four" &
load=$!
sleep 2
for _ in 1 2 3 4 5; do
  curl -s -o /dev/null -w '/healthz %{http_code} in %{time_total} s\n' "$base/healthz"
  sleep 1
done
wait $load
cat "$work/four"
curl -s "$base/metrics" | grep '^sumout_shed_total'
curl -s -o /dev/null -w 'afterwards: /v1/predict %{http_code} in %{time_total} s\n' -H 'content-type: application/json' --data-binary "@$work/one.json" "$base/v1/predict"

echo "== $rows rows: sumout predict, and as an Arrow stream"
"$python" - "$work" "$rows" <<'EOF'
import json
import sys
import numpy as np
import pyarrow as pa
digits = np.array([row["values"] for row in json.load(open(sys.argv[1] + "/digits.json"))["rows"]], np.float32)
rows = np.resize(digits, (int(sys.argv[2]), 784))  # the same 200 digits repeated
np.save(sys.argv[1] + "/rows.npy", rows)
schema = pa.schema([(f"x{i}", pa.float32()) for i in range(784)])
with pa.ipc.new_stream(sys.argv[1] + "/rows.arrows", schema) as writer:
    for first in range(0, len(rows), 1024):
        part = np.ascontiguousarray(rows[first:first + 1024].T)
        writer.write_batch(pa.record_batch([pa.array(column) for column in part], schema=schema))
EOF
seconds() { # of a command
  local start=$EPOCHREALTIME
  "$@"
  echo "$start $EPOCHREALTIME" | awk '{ print $2 - $1 }'
}
before=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")
for _ in 1 2 3; do
  a=$(seconds $program predict "$model" --data "$work/rows.npy" --out "$work/a.csv")
  b=$(seconds curl -sf -X POST -T "$work/rows.arrows" -H 'expect:' -H 'content-type: application/vnd.apache.arrow.stream' -o "$work/b.arrows" "$base/v1/predict")
  echo "$a $b $rows" | awk '{ printf "predict %.0f rows/s, Arrow stream %.0f rows/s: %.0f %%\n", $3 / $1, $3 / $2, 100 * $1 / $2 }'
done
after=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")
echo "peak memory: $before kB before the streams, $after kB after them"
