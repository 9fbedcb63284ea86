"""How many lines of the readers are reached: reads what `llvm-cov export --format=lcov` writes (fuzz/README.md).

Only functions of which a line was reached are counted; the others, such as writers, are named.
"""

import re
import sys
from pathlib import Path

READERS = """
data/src/formats: csv json_lines json_row npy npz array png idx norb sound sound_files parquet/enabled parquet/dictionaries
data/src: files/encoding rows/dates rows/notation plan/mod plan/sequence_plan
engine/src: model/model_file model/tensor_file training/checkpoint
serve/src/formats: arrow/cursor arrow/flat arrow/read arrow/schema arrow/values json csv_rows
"""
FUNCTION = re.compile(r"\s*(?:pub(?:\([a-z]+\))? )?(?:async |const |unsafe )*fn (\w+)")


def reached_lines(report):
    """For every file whether each of its lines was reached."""
    files = {}
    for line in report:
        what, _, value = line.strip().partition(":")
        if what == "SF":
            lines = files.setdefault(value, {})
        elif what == "DA":
            number, count = value.split(",")[:2]
            lines[int(number)] = int(count) > 0
    return files


def by_function(path, lines):
    """The lines of every function, by its name and place."""
    functions, name = {}, "outside of functions"
    for number, text in enumerate(Path(path).read_text().splitlines(), 1):
        found = FUNCTION.match(text)
        name = f"{found[1]}:{number}" if found else name
        if number in lines:
            functions.setdefault(name, []).append(lines[number])
    return functions


def main():
    files = reached_lines(sys.stdin)
    reached = counted = 0
    for row in READERS.split("\n"):
        folder, _, names = row.partition(": ")
        for name in names.split():
            end = f"{folder}/{name}.rs"
            path = next(path for path in files if path.endswith(end))
            functions = by_function(path, files[path])
            lines = [line for lines in functions.values() if any(lines) for line in lines]
            others = [name.split(":")[0] for name, lines in functions.items() if not any(lines)]
            print(f"{end:45} {sum(lines):4} of {len(lines):4} {sum(lines) / len(lines):4.0%}  {' '.join(others)}")
            reached, counted = reached + sum(lines), counted + len(lines)
    print(f"{reached} of {counted} lines, {reached / counted:.1%}")


if __name__ == "__main__":
    main()
