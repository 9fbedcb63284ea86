"""Programs that are killed and disks that are full while a model is saved: the old file or the new one, never half."""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sumout
from sumout import TMMDensity

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")

SAVE_FOR_EVER = """
import sys
import sumout
old, new, path = sys.argv[1:]
models = [sumout.load(old), sumout.load(new)]
print("started", flush=True)
while True:
    for model in models:
        model.save(path)
"""


def model(seed):
    X = np.random.RandomState(seed).normal(size=(60, 3))
    return TMMDensity(steps=5, random_state=seed).fit(X)


def test_killed_while_saving(tmp_path):
    for seed in (0, 1):
        model(seed).save(tmp_path / f"{seed}.sumout")
    whole = {(tmp_path / f"{seed}.sumout").read_bytes() for seed in (0, 1)}
    place, delays = tmp_path / "saved" / "model.sumout", random.Random(0)
    place.parent.mkdir()
    for _ in range(int(os.environ.get("SUMOUT_KILLS", "5"))):
        paths = [tmp_path / "0.sumout", tmp_path / "1.sumout", place]
        command = [sys.executable, "-c", SAVE_FOR_EVER, *map(str, paths)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "started\n"
        time.sleep(delays.uniform(0, 0.1))
        child.kill()
        child.wait()
        child.stdout.close()
        assert not place.exists() or place.read_bytes() in whole
        if place.exists():
            sumout.load(place)


def test_a_disk_that_gets_full(tmp_path):
    place = tmp_path / "model.sumout"
    model(0).save(place)
    before, other = place.read_bytes(), model(1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError):
            other.save(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert place.read_bytes() == before and os.listdir(tmp_path) == ["model.sumout"]
