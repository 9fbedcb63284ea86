"""What is on the disk after a power cut at any moment of `sumout train`?

    cargo build --release && python3 cli/tests/power_cut.py target/release/sumout

Needs strace. It records the system calls of a training run that writes checkpoints and replaces an old model. Then it
replays them on a disk that keeps as little as a disk may keep: the bytes of a file only after it was synchronised, and
names only after their folder was, in any order. After every call, and whatever was kept, there must be a whole model,
old or new, and never half of one.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

CALLS = "openat,creat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,mkdir"
PLAN = "[columns]\ncomponents = 2\nchannels = [2]\n[settings]\nsteps = 60\nbatch = 8\n"
TRAIN = "train plan.toml --data rows.csv --target y --checkpoint-every 20 --out model.sumout"


class Disk:
    """Names and bytes: as programs see them, and as they are kept for sure."""

    def __init__(self, files):
        self.files = dict(files)  # name: identity
        self.kept_files = dict(files)
        self.data = {name: None for name in files.values()}  # identity: bytes, None for what was there before
        self.whole = set(files.values())  # identities whose bytes are kept
        self.pending = []  # changes of names that are not kept for sure

    def change(self, change):
        apply(self.files, change)
        self.pending.append(change)

    def sync(self, identity):
        self.whole.add(identity)

    def sync_names(self):
        self.kept_files, self.pending = dict(self.files), []

    def after_a_cut(self):
        """All that may be there: any of the changes that are not kept, in their order."""
        for count in range(len(self.pending) + 1):
            for kept in itertools.combinations(self.pending, count):
                files = dict(self.kept_files)
                for change in kept:
                    apply(files, change)
                yield files


def apply(files, change):
    kind, name, other = change
    if kind == "link":
        files[name] = other
    elif kind == "unlink":
        files.pop(name, None)
    elif name in files:  # a file that was renamed before its first name was kept has no name to lose
        files[other] = files.pop(name)
    else:
        files[other] = change_identity[change]


change_identity = {}  # of renamings: what they renamed


def calls(log, folder):
    """(call, arguments, result) of every call about files of the folder."""
    begun = {}
    for line in log:
        process, line = line.split(None, 1)
        if "<unfinished" in line:
            begun[process] = line.split(" <unfinished")[0]
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", line)
        if resumed:
            line = begun.pop(process, "") + resumed[1]
        call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)(.*)", line)
        if call and folder in line and int(call[3]) >= 0:
            yield call[1], call[2], call[4]


def names_in(text, folder):
    found = re.findall(r'[<"](' + re.escape(folder) + r'[^>"]*)[>"]', text)
    return [name[len(folder) :].lstrip("/") for name in found]


def replay(log, folder, old):
    """Checks every moment; how many states of the disk were looked at."""
    disk, looked_at, number, written = Disk({"model.sumout": "old"}), 0, 0, {}
    renamed_to = {}
    for call, arguments, result in calls(log, folder):
        names = names_in(arguments + result, folder)
        name = names[-1] if names else ""
        if call in ("openat", "creat") and ("O_CREAT" in arguments) and name not in disk.files:
            number += 1
            disk.data[number] = b""
            disk.change(("link", name, number))
        elif call in ("write", "pwrite64") and name in disk.files:
            identity = disk.files[name]
            disk.whole.discard(identity)
            written[identity] = written.get(identity, 0) + 1
        elif call in ("fsync", "fdatasync"):
            if name in disk.files:
                disk.sync(disk.files[name])
            else:
                disk.sync_names()
        elif call.startswith("rename"):
            change = ("rename", names[0], names[1])
            change_identity[change] = disk.files[names[0]]
            renamed_to[names[1]] = renamed_to.get(names[1], 0) + 1
            disk.change(change)
        elif call.startswith("unlink") and name in disk.files:
            disk.change(("unlink", name, None))
        else:
            continue
        for files in disk.after_a_cut():
            looked_at += 1
            check(files, disk, call)
    assert renamed_to.get("model.sumout") == 1, f"expected one renaming to model.sumout: {renamed_to}"
    assert disk.files["model.sumout"] != old and disk.files["model.sumout"] in disk.whole
    return looked_at


def check(files, disk, call):
    for name in ("model.sumout", "model.checkpoint.sumout"):
        if name in files:
            assert files[name] in disk.whole, f"{name} may be half after {call}: {files}"
    assert "model.sumout" in files, f"no model after {call}: {files}"


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        with open(path("rows.csv"), "w") as file:
            file.write("a,b,y\n" + "".join(f"{i % 7},{i * i % 11},{i % 2}\n" for i in range(40)))
        with open(path("plan.toml"), "w") as file:
            file.write(PLAN)
        train = [os.path.abspath(program), *TRAIN.replace(" model", f" {folder}/model").split()]
        subprocess.run([*train, "--seed", "1"], cwd=folder, check=True, capture_output=True)
        old = open(path("model.sumout"), "rb").read()
        strace = ["strace", "-f", "-y", "-s", "0", "-e", f"trace={CALLS}", "-o", path("log")]
        subprocess.run([*strace, *train, "--seed", "2"], cwd=folder, check=True, capture_output=True)
        assert open(path("model.sumout"), "rb").read() != old, "expected another model"
        with open(path("log")) as log:
            looked_at = replay(log, folder, "old")
    print(f"ok      {looked_at} states of the disk after a power cut: a whole model in each")


if __name__ == "__main__":
    main(sys.argv[1])
