"""The service with other programs: Arrow streams of pyarrow, schemathesis against /openapi.json.

In an environment with pyarrow and schemathesis:

    SUMOUT=target/release/sumout python serve/web/test/api.py
"""

import io
import os
import random
import subprocess
import sys

import pyarrow as pa
from service import Service, run

ARROW = "application/vnd.apache.arrow.stream"
ROWS = [[2.5, None, "blue"], [None, None, None], [1.5, 3.0, "red"], [0.5, 9.0, None]]
NAMES = ["width", "length", "colour"]
COLUMNS = dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))


def stream(table, max_chunksize=3, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=max_chunksize)
    return sink.getvalue()


def read(answer):
    status, data = answer
    assert status == 200, (status, data[:300])
    return pa.ipc.open_stream(data).read_all()


def table(**kinds):
    """ROWS, with columns of these types instead of the usual ones."""
    kinds = {"width": pa.float32(), "length": pa.float64(), "colour": pa.string(), **kinds}
    return pa.table({name: pa.array(COLUMNS[name]).cast(kinds[name]) for name in NAMES})


def predict(service, table, model="flowers"):
    """Status and bytes of the response to an Arrow stream."""
    return service.request(f"/v1/predict?model={model}", stream(table), ARROW)


def arrow_agrees_with_json(service):
    expected = service.json("/v1/predict?model=flowers", ROWS)["rows"]
    rows = read(predict(service, table())).to_pylist()
    posterior = [[row[f"p_{name}"] for name in ("iris", "rose", "tulip")] for row in rows]
    assert posterior == [row["posterior"] for row in expected]
    for name in ("class", "log_likelihood"):
        assert [row[name] for row in rows] == [row[name] for row in expected]


def arrow_fills_holes(service):
    path = "/v1/impute?model=flowers&deviation=true&classes=true"
    expected = service.json(path, ROWS)["rows"]
    answer = read(service.request(path, stream(table()), ARROW))
    types = [answer.schema.field(name).type for name in ("width", "colour")]
    assert types == [pa.float32(), pa.string()], types
    for row, other in zip(answer.to_pylist(), expected, strict=True):
        assert row["colour"] == other["values"][2]
        assert abs(row["length"] - other["values"][1]) < 1e-5
        assert abs(row["sd_length"] - other["deviation"][1]) < 1e-5
    samples = read(service.request("/v1/sample?model=flowers&count=5", accept=ARROW))
    assert samples.num_rows == 5 and samples["width"].null_count == 0


def every_type_of_text_and_number(service):
    expected = predict(service, table())
    codes = [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())]
    for kind in (pa.large_string(), pa.string_view(), *codes):
        assert predict(service, table(colour=kind)) == expected, kind
    for kind in (pa.float64(), pa.float16()):
        assert predict(service, table(width=kind)) == expected, kind
    whole = pa.table({"width": [1, None, 3], "length": [4, 5, 6], "colour": ["red", "blue", None]})
    expected = predict(service, whole)
    signed, unsigned = ["int8", "int16", "int32"], ["uint8", "uint16", "uint32", "uint64"]
    for kind in [*signed, *unsigned]:
        changed = whole.set_column(0, "width", whole["width"].cast(kind))
        assert predict(service, changed) == expected, kind


def other_columns_are_skipped(service):
    others = {
        "list": pa.array([[1, 2], None, [], [3]]),
        "day": pa.array([1, 2, 3, 4], pa.date32()),
        "inside": pa.array([{"a": 1, "b": "x"}] * 4),
        "nothing": pa.nulls(4),
        "bytes": pa.array([b"x", None, b"", b"y"]),
        "fixed": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)),
    }
    more = table()
    for name, cells in others.items():
        more = more.append_column(name, cells)
    order = ["list", "colour", "day", "inside", "nothing", "width", "bytes", "fixed", "length"]
    assert predict(service, more.select(order)) == predict(service, table())


def images_as_columns_or_lists(service):
    rows = [row["values"] for row in service.json("/v1/examples?model=digits&count=5")["rows"]]
    expected = [row["class"] for row in service.json("/v1/predict?model=digits", rows)["rows"]]
    pixels = {f"pixel {i}": pa.array([row[i] for row in rows], pa.uint8()) for i in range(784)}
    lists = {"label": pa.array(range(5)), "image": pa.array(rows, pa.list_(pa.float32(), 784))}
    for columns in (pixels, lists):
        answer = read(predict(service, pa.table(columns), "digits"))
        assert answer["class"].to_pylist() == expected


def bad_streams_are_rejected(service):
    def send(data):
        return service.request("/v1/predict?model=flowers", data, ARROW)

    def error(width, length=(1.0,), colour=("red",)):
        columns = {"width": width, "length": length, "colour": colour}
        return send(stream(pa.table({name: list(cells) for name, cells in columns.items()})))[1]

    ones = [1.0] * 3
    pink = error(ones, ones, ["red", None, "pink"])
    assert b"row 3, column 'colour': expected blue, red, white, got 'pink'" in pink
    assert b"row 1, column 'width': expected a finite number" in error([float("inf")])
    assert b"column 'width': expected numbers, truth values or text" in error([[1.0]])
    short = send(stream(pa.table({"width": [1.0]})))[1]
    assert b"schema: expected a column 'length'" in short
    compressed = pa.ipc.IpcWriteOptions(compression="zstd")
    assert b"without compression" in send(stream(table(), options=compressed))[1]


def large_batches_are_rejected(service):
    count = 2_200_000
    columns = {"width": [1.0] * count, "length": [1.0] * count, "colour": pa.nulls(count)}
    data = stream(pa.table(columns), max_chunksize=None)
    status, text = service.request("/v1/predict?model=flowers", data, ARROW)
    assert status == 413 and b"record batches of at most 32 MiB" in text, (status, text)


def damaged_streams_do_no_harm(service):
    chance = random.Random(1)
    whole = stream(table(colour=pa.dictionary(pa.int8(), pa.string())))
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        status, text = service.request("/v1/predict?model=flowers", bytes(data), ARROW)
        assert status in (200, 400, 413), (status, text)
    assert service.request("/healthz")[0] == 200


def the_service_keeps_to_its_schema(service):
    cases = os.environ.get("CASES", "25")
    os.environ["SCHEMATHESIS_HOOKS"] = "schema_hooks"
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    command = [
        os.path.join(os.path.dirname(sys.executable), "schemathesis"),
        "run",
        service.base + "/openapi.json",
        "--max-examples",
        cases,
        "--seed",
        "1",
        "--generation-database",
        "none",
        "--no-color",
        "--suppress-health-check",
        "all",
        "--request-timeout",
        "20",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=service.folder.name)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


if __name__ == "__main__":
    service = Service("--log", "none")
    tests = [
        arrow_agrees_with_json,
        arrow_fills_holes,
        every_type_of_text_and_number,
        other_columns_are_skipped,
        images_as_columns_or_lists,
        bad_streams_are_rejected,
        large_batches_are_rejected,
        damaged_streams_do_no_harm,
    ]
    failed = run(tests, service)
    service.close()
    small = Service("--log", "none", models=("flowers",))
    failed += run([the_service_keeps_to_its_schema], small)
    small.close()
    sys.exit(failed > 0)
