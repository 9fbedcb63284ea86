"""Writes the files of this folder: every type of Arrow that the service reads, of the columns age, sex, coin and kind, and Parquet.

    pip install pyarrow && python fuzz/seeds/write.py
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent


def write(name, columns):
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(FOLDER / f"{name}.arrow", batch.schema) as stream:
        stream.write_batch(batch)


def pets(numbers, text, coin, kind):
    return {
        "age": pa.array([3, None], numbers),
        "sex": pa.array(["f", None], text),
        "coin": pa.array([True, False], pa.bool_()).cast(coin),
        "kind": pa.array([None, 2], kind),
    }


write("signed", pets(pa.int8(), pa.large_string(), pa.int16(), pa.int32()))
write("unsigned", pets(pa.uint8(), pa.string_view(), pa.uint16(), pa.uint32()))
write("wide", pets(pa.int64(), pa.string(), pa.uint64(), pa.float64()))
write("half", pets(pa.float16(), pa.dictionary(pa.int8(), pa.string()), pa.bool_(), pa.int64()))
dictionary = pa.DictionaryArray.from_arrays
write(
    "dictionaries",
    {
        "three": pa.array([[1, 2, 3], None], pa.list_(pa.float32(), 3)),
        "age": dictionary(pa.array([1, None], pa.int8()), pa.array([1.5, 2.5])),
        "sex": ["f", "m"],
        "coin": dictionary(pa.array([0, 1], pa.uint16()), pa.array([False, True])),
        "kind": dictionary(pa.array([0, 0], pa.int32()), pa.array([2], pa.float32())),
    },
)
long = "a word of more than twelve letters"
write("view", {"age": [1.5, None], "sex": pa.array([long, "m"], pa.string_view()), "coin": [True, None]})
lists = pa.array([[1.5, 0, 1, None], None], pa.list_(pa.float32(), 4))
write("lists", {"lists": lists})
write("whole_lists", {"lists": pa.array([[1, 0, 1, 2]], pa.list_(pa.int8(), 4))})
inside = pa.struct({"a": pa.list_(pa.int8()), "b": pa.string()})
more = [{"a": [1, 2], "b": "x"}, None]
write("others", {"id": pa.array(more, inside), "nothing": pa.nulls(2), "age": [1.0, 2.0], "tags": [{"k": 1}, None]})
table = pa.table(
    {
        "id": [7, 8],
        "age": [1.5, None],
        "sex": ["f", "m"],
        "coin": [None, True],
        "kind": pa.array([1, 2], pa.uint64()),
        "a_remark": ["a", None],
    }
)
pq.write_table(table, FOLDER / "pets.parquet", compression="snappy")
twice = pa.table([[1.0, 2.0], [3.0, None]], names=["a", "a"])
pq.write_table(twice, FOLDER / "twice.parquet")
