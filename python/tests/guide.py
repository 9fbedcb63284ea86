"""The blocks of a page of the guide, with what they print."""

import contextlib
import io
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page):
    """Pairs of code and what it prints."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", text, re.S)


def run(page, wanted=""):
    """Runs the blocks that have this text in them, one after the other; how many there were."""
    names, count = {}, 0
    for code, expected in blocks(page):
        if wanted not in code:
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), names)
        assert out.getvalue() == expected, code
        count += 1
    return count
