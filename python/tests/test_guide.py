"""The code of the guide runs and prints what the guide shows."""

import guide


def test_every_block_prints_what_the_guide_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guide.run("python.md") >= 6


def test_blocks_about_batches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guide.run("beyond-one-machine.md", "from sumout.batches") == 1
