"""The code of the guide runs and prints what the guide shows."""

import contextlib
import io
import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def test_every_block_prints_what_the_guide_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", GUIDE.read_text(), re.S)
    assert len(blocks) >= 6
    names = {}
    for code, expected in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(GUIDE), "exec"), names)
        assert out.getvalue() == expected, code
