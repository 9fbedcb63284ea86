"""The service beside other people's programs: Arrow streams of pyarrow, and schemathesis against /openapi.json.

    SUMOUT=target/release/sumout python serve/web/test/api.py        (in an environment with pyarrow and schemathesis)
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
COLUMNS = list(zip(*ROWS))


def stream(table, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=3)
    return sink.getvalue()


def read(answer):
    status, data = answer
    assert status == 200, (status, data[:300])
    return pa.ipc.open_stream(data).read_all()


def table(**kinds):
    arrays = {"width": pa.array(COLUMNS[0], pa.float32()), "length": pa.array(COLUMNS[1], pa.float64()), "colour": pa.array(COLUMNS[2])}
    arrays.update({name: pa.array(COLUMNS[["width", "length", "colour"].index(name)]).cast(kind) for name, kind in kinds.items()})
    return pa.table(arrays)


def arrow_in_and_out_is_what_json_says(service):
    expected = service.json("/v1/predict?model=flowers", ROWS)["rows"]
    answer = read(service.ask("/v1/predict?model=flowers", stream(table()), ARROW)).to_pylist()
    assert [row["class"] for row in answer] == [row["class"] for row in expected]
    assert [[row[f"p_{name}"] for name in ("iris", "rose", "tulip")] for row in answer] == [row["posterior"] for row in expected]
    assert [row["log_likelihood"] for row in answer] == [row["log_likelihood"] for row in expected]


def arrow_fills_holes(service):
    expected = service.json("/v1/impute?model=flowers&deviation=true&classes=true", ROWS)["rows"]
    answer = read(service.ask("/v1/impute?model=flowers&deviation=true&classes=true", stream(table()), ARROW))
    assert answer.schema.field("width").type == pa.float32() and answer.schema.field("colour").type == pa.string()
    for row, other in zip(answer.to_pylist(), expected):
        assert row["colour"] == other["values"][2] and abs(row["length"] - other["values"][1]) < 1e-5
        assert abs(row["sd_length"] - other["deviation"][1]) < 1e-5
    drawn = read(service.ask("/v1/sample?model=flowers&count=5", accept=ARROW))
    assert drawn.num_rows == 5 and drawn["width"].null_count == 0


def every_type_of_text_and_number(service):
    expected = service.ask("/v1/predict?model=flowers", stream(table()), ARROW)
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())):
        assert service.ask("/v1/predict?model=flowers", stream(table(colour=kind)), ARROW) == expected, kind
    for kind in (pa.float64(), pa.float16()):
        assert service.ask("/v1/predict?model=flowers", stream(table(width=kind)), ARROW) == expected, kind
    whole = pa.table({"width": [1, None, 3], "length": [4, 5, 6], "colour": ["red", "blue", None]})
    expected = service.ask("/v1/predict?model=flowers", stream(whole), ARROW)
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        changed = whole.set_column(0, "width", whole["width"].cast(kind))
        assert service.ask("/v1/predict?model=flowers", stream(changed), ARROW) == expected, kind


def other_columns_are_stepped_over(service):
    expected = service.ask("/v1/predict?model=flowers", stream(table()), ARROW)
    more = table().append_column("list", pa.array([[1, 2], None, [], [3]])).append_column("day", pa.array([1, 2, 3, 4], pa.date32()))
    more = more.append_column("inside", pa.array([{"a": 1, "b": "x"}] * 4)).append_column("nothing", pa.nulls(4))
    more = more.append_column("bytes", pa.array([b"x", None, b"", b"y"])).append_column("fixed", pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)))
    more = more.select(["list", "colour", "day", "inside", "nothing", "width", "bytes", "fixed", "length"])
    assert service.ask("/v1/predict?model=flowers", stream(more), ARROW) == expected


def images_as_columns_or_lists(service):
    rows = [row["values"] for row in service.json("/v1/examples?model=digits&count=5")["rows"]]
    expected = [row["class"] for row in service.json("/v1/predict?model=digits", rows)["rows"]]
    columns = pa.table({f"pixel {i}": pa.array([row[i] for row in rows], pa.uint8()) for i in range(784)})
    lists = pa.table({"label": pa.array(range(5)), "image": pa.array(rows, pa.list_(pa.float32(), 784))})
    for data in (columns, lists):
        assert read(service.ask("/v1/predict?model=digits", stream(data), ARROW))["class"].to_pylist() == expected


def bad_streams_are_named(service):
    says = lambda data: service.ask("/v1/predict?model=flowers", data, ARROW)
    assert b"row 3, column 'colour': expected blue, red, white, got 'pink'" in says(stream(pa.table({"width": [1.0] * 3, "length": [1.0] * 3, "colour": ["red", None, "pink"]})))[1]
    assert b"row 1, column 'width': expected a finite number" in says(stream(pa.table({"width": [float("inf")], "length": [1.0], "colour": ["red"]})))[1]
    assert b"schema: expected a column 'length'" in says(stream(pa.table({"width": [1.0]})))[1]
    assert b"column 'width': expected numbers, truth values or text" in says(stream(pa.table({"width": [[1.0]], "length": [1.0], "colour": ["red"]})))[1]
    compressed = pa.ipc.IpcWriteOptions(compression="zstd")
    assert b"without compression" in says(stream(table(), options=compressed))[1]
    big = pa.table({"width": pa.array([1.0] * 2_200_000), "length": [1.0] * 2_200_000, "colour": pa.nulls(2_200_000)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, big.schema) as writer:
        writer.write_table(big)
    status, text = says(sink.getvalue())
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
        status, text = service.ask("/v1/predict?model=flowers", bytes(data), ARROW)
        assert status in (200, 400, 413), (status, text)
    assert service.ask("/healthz")[0] == 200


def the_description_is_what_is_served(service):
    cases = os.environ.get("CASES", "25")
    os.environ["SCHEMATHESIS_HOOKS"] = "schema_hooks"
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    command = [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", service.base + "/openapi.json",
               "--max-examples", cases, "--seed", "1", "--generation-database", "none", "--no-color",
               "--suppress-health-check", "all", "--request-timeout", "20"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=service.folder.name)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


if __name__ == "__main__":
    service = Service("--log", "none")
    tests = [arrow_in_and_out_is_what_json_says, arrow_fills_holes, every_type_of_text_and_number, other_columns_are_stepped_over,
             images_as_columns_or_lists, bad_streams_are_named, damaged_streams_do_no_harm]
    failed = run(tests, service)
    service.close()
    small = Service("--log", "none", models=("flowers",))
    failed += run([the_description_is_what_is_served], small)
    small.close()
    sys.exit(failed > 0)
