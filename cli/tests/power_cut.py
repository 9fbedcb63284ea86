"""What is on the disk after a power cut at any moment of `sumout train`?

    cargo build --release && python3 cli/tests/power_cut.py target/release/sumout

Needs strace. It records the system calls of a training run that writes checkpoints and replaces an old model. Then it
replays them on a disk that keeps as little as a disk may keep: the bytes of a file only after it was synchronised, and
names only after their folder was, in any combination. After every call, and whatever was kept, there must be a whole
model, old or new, and no file that is half written; at the end it must be the new one.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

CALLS = "openat,creat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat"
PLAN = "[columns]\ncomponents = 2\nchannels = [2]\n[settings]\nsteps = 60\nbatch = 8\n"
TRAIN = "train plan.toml --data rows.csv --target y --checkpoint-every 20 --out"
MODEL, CHECKPOINT = "model.sumout", "model.checkpoint.sumout"


class Disk:
    """Names of files, as programs see them and as they are kept for sure. Every file that is created has a number."""

    def __init__(self):
        self.files = {MODEL: 0}  # the old one
        self.kept = dict(self.files)
        self.whole = {0}  # files whose bytes are kept
        self.pending = []  # changes of names that are not kept for sure
        self.created = 0

    def change(self, change):
        self.files = changed(self.files, change)
        self.pending.append(change)

    def do(self, call, arguments, names):
        """One system call; whether it changes what may be on the disk."""
        name = names[-1] if names else ""
        if call in ("openat", "creat") and "O_CREAT" in arguments and name not in self.files:
            self.created += 1
            self.change((name, self.created))
        elif call in ("write", "pwrite64") and name in self.files:
            self.whole.discard(self.files[name])
        elif call in ("fsync", "fdatasync") and name in self.files:
            self.whole.add(self.files[name])
        elif call in ("fsync", "fdatasync"):  # the folder
            self.kept, self.pending = dict(self.files), []
        elif call.startswith("rename"):
            self.change((names[0], None, names[1], self.files[names[0]]))
        elif call.startswith("unlink") and name in self.files:
            self.change((name, None))
        else:
            return False
        return True

    def after_a_cut(self):
        """All that may be there: any of the changes that are not kept, in their order."""
        for count in range(len(self.pending) + 1):
            for happened in itertools.combinations(self.pending, count):
                files = self.kept
                for change in happened:
                    files = changed(files, change)
                yield files


def changed(files, change):
    """Names with their new files; none is a name that goes."""
    files = dict(files)
    for name, file in zip(change[::2], change[1::2]):
        if file is None:
            files.pop(name, None)
        else:
            files[name] = file
    return files


def calls(log, folder):
    """Every call that succeeded about files of the folder: its name, its arguments and the names in them."""
    begun = {}
    for line in log:
        process, line = line.split(None, 1)
        if "<unfinished" in line:
            begun[process] = line.split(" <unfinished")[0]
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", line)
        if resumed:
            line = begun.pop(process, "") + resumed[1]
        call = re.match(r"(\w+)\((.*)\)\s+= (\d+.*)", line)
        if call and folder in line:
            found = re.findall(r'[<"]' + re.escape(folder) + r'/?([^>"]*)[>"]', call[2] + call[3])
            yield call[1], call[2], found


def replay(log, folder):
    """Checks every moment; how many states of the disk were looked at."""
    disk, looked_at = Disk(), 0
    for call, arguments, names in calls(log, folder):
        if not disk.do(call, arguments, names):
            continue
        for files in disk.after_a_cut():
            looked_at += 1
            assert MODEL in files, f"no model after {call}: {files}"
            for name in (MODEL, CHECKPOINT):
                assert files.get(name, 0) in disk.whole, f"half of {name} after {call}: {files}"
    assert disk.created > 2, f"expected checkpoints and a model, got {disk.created} files"
    for files in disk.after_a_cut():
        assert files[MODEL] != 0, f"the new model may be lost at the end: {files}"
    return looked_at


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        with open(os.path.join(folder, "rows.csv"), "w") as file:
            file.write("a,b,y\n" + "".join(f"{i % 7},{i * i % 11},{i % 2}\n" for i in range(40)))
        with open(os.path.join(folder, "plan.toml"), "w") as file:
            file.write(PLAN)
        model, log = os.path.join(folder, MODEL), os.path.join(folder, "log")
        train = [os.path.abspath(program), *TRAIN.split(), model]
        strace = ["strace", "-f", "-y", "-s", "0", "-e", f"trace={CALLS}", "-o", log]
        for before in ([], strace):
            subprocess.run([*before, *train], cwd=folder, check=True, capture_output=True)
        with open(log) as lines:
            looked_at = replay(lines, folder)
    print(f"ok      {looked_at} states of the disk after a power cut: a whole model in each")


if __name__ == "__main__":
    main(sys.argv[1])
