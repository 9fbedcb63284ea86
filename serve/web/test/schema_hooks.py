"""What the OpenAPI schema cannot express.

Bodies in CSV, JSON lines and Arrow that fit the model of flowers, and that only how=mean has a
deviation.
"""

import io
import json

import pyarrow as pa
import schemathesis
from hypothesis import strategies as st

number = st.none() | st.floats(-1e6, 1e6, width=32)
row = st.tuples(number, number, st.sampled_from([None, "red", "blue", "white"]))
rows = st.lists(row, max_size=5)


def as_csv(rows):
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    return "\n".join(["width,length,colour", *lines, ""]).encode()


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_arrow(rows):
    schema = pa.schema([("width", pa.float32()), ("length", pa.float64()), ("colour", pa.string())])
    table = pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


schemathesis.openapi.media_type("text/csv", rows.map(as_csv))
schemathesis.openapi.media_type("application/x-ndjson", rows.map(as_lines))
schemathesis.openapi.media_type("application/vnd.apache.arrow.stream", rows.map(as_arrow))


@schemathesis.hook
def filter_case(context, case):
    query = case.query or {}
    asked = {name for name in query if str(query[name]).lower() == "true"}
    return query.get("how") not in ("median", "mode", "sample") or "deviation" not in asked
