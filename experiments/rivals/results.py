"""Plans in and results out, in the form of the Rust program: `plans/NAME.toml`, `results/NAME.json`."""

import argparse
import json
import os
import tempfile
import tomllib
from pathlib import Path

import torch

import holes
import mnist
from steps import choose_device, say

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "data" / "digits"  # 5,000 training and 1,000 test images
SCRIPTS = {"few-labels": "few_labels"}  # where the name of a script is not that of its method
LIKE_MNIST = ["mnist", "fashion-mnist"]  # sets that `sumout data get` knows
DEFAULTS = {"paper": None, "seeds": [1, 2, 3], "columns": holes.PAPER, "train": None, "test": None, "hold_out": 0}


def arguments(description):
    """The options that all scripts share."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("names", nargs="*", help="plans; default: all of this method")
    parser.add_argument("--data", help="folder with the four files of MNIST or Fashion-MNIST; default: where `sumout data get` puts them. "
                        "For other sets, the folder that `experiments prepare` wrote")  # fmt: skip
    parser.add_argument("--plans", type=Path, default=HERE.parent / "plans")
    parser.add_argument("--results", type=Path, default=HERE.parent / "results")
    parser.add_argument("--work", type=Path, help="folder for trained nets and unfinished work; default: the results")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", help="default: those of the plan")
    parser.add_argument("--minutes", type=float, help="train no longer than this; schedules shrink with it")
    parser.add_argument("--quick", action="store_true", help="a few steps on a few images: checks that the script works")
    args = parser.parse_args()
    args.device = choose_device(args.device)
    if args.quick:
        torch.manual_seed(1)
        torch.set_num_threads(1)  # steps are so small that threads would wait for each other
        args.folder = tempfile.TemporaryDirectory()  # removed at the end
        args.results = Path(args.folder.name)
        args.data, args.seeds = args.data or DIGITS, args.seeds or [1]
    args.work = args.results if args.quick else args.work or args.results
    args.work.mkdir(parents=True, exist_ok=True)
    return args


def data_of(args, of_set="mnist"):
    """MNIST, or a set like it, on the device; in a quick run, a part of the digits that come with the project."""
    data = mnist.read(args.data or mnist.default_folder(of_set), args.device)
    if args.quick:
        data.train, data.test = data.train.first(2000), data.test.first(200)
    return data


def machine(device):
    """This machine in words, as the Rust program says it."""
    name = "an unknown processor"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    gpu = f" and {torch.cuda.get_device_name(device)}" if device.type == "cuda" else ""
    return f"{len(os.sched_getaffinity(0))} cores of {name}{gpu}"


def command(name, script, plan, args):
    """What makes the results once more."""
    data = "" if plan.get("set", "mnist") in LIKE_MNIST else " --data DATA"
    minutes = f" --minutes {args.minutes:g}" if args.minutes else ""
    return f"python experiments/rivals/{script}.py {name}{data}{minutes}"


class Experiment:
    """A plan, and the file of its results. It is written after every run, so that a stopped script continues."""

    def __init__(self, name, script, args, data):
        plan = DEFAULTS | tomllib.loads((args.plans / f"{name}.toml").read_text())
        if args.quick:
            plan["columns"] = plan["columns"][::6]  # clean, iid:0.99 and rect:3x11
        self.name, self.plan = name, plan
        self.options, self.columns = plan.setdefault("options", {}), plan["columns"]
        self.seeds = args.seeds or plan["seeds"]
        self.path, self.machine = args.results / f"{name}.json", machine(args.device)
        self.use(data)
        self.record = {
            "name": name,
            "title": plan["title"],
            "method": plan["method"],
            "command": command(name, script, plan, args),
            "data": data.checksum,
            "plan": plan,
            "settings": {"torch": torch.__version__.partition("+")[0]},
            "columns": self.columns,
            "runs": [],
        }
        if self.path.exists():
            old = json.loads(self.path.read_text())
            if old["plan"] == plan and old["data"] == data.checksum:
                self.record |= {"runs": old["runs"], "settings": old["settings"]}

    def use(self, data):
        """What trains and what tests; in some sets it depends on the seed."""
        self.data, self.test = data, data.test.first(self.plan["test"])

    def has(self, seed, row=""):
        return any(run["seed"] == seed and run["row"] == row for run in self.record["runs"])

    def masks(self, column, seed):
        """The holes of a column in the test images: (n, numbers of an image), bool."""
        mask = holes.test_masks(column, range(len(self.test.labels)), seed, *self.data.shape)
        return torch.from_numpy(mask).to(self.test.pixels.device)

    def accuracy(self, answers):
        """In percent; answers are (n) or (nets, n)."""
        return 100 * (answers == self.test.labels).double().mean(-1)

    def add(self, seed, accuracies, train_seconds, test_seconds, row="", tested=None):
        run = {
            "row": row,
            "seed": seed,
            "mask_seed": seed,
            "train": len(self.data.train.labels),
            "test": len(self.test.labels[:tested]),
            "train_seconds": round(train_seconds, 1),
            "test_seconds": round(test_seconds, 1),
            "machine": self.machine,
            "accuracies": [round(float(accuracy), 4) for accuracy in accuracies],
        }
        self.record["runs"].append(run)
        self.record["runs"].sort(key=lambda run: (run["row"], run["seed"]))
        self.save()
        say(f"{self.name}{', ' + row if row else ''}, seed {seed}", " ".join(f"{x:.2f}" for x in run["accuracies"]))

    def note(self, **settings):
        """What else is to be kept, such as the check beside the published number."""
        self.record["settings"] |= settings
        self.save()
        say(self.name, json.dumps(settings))

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.record, indent=2, ensure_ascii=False) + "\n")
        beside.replace(self.path)


def plans_of(method, args, of_set):
    """The names of a method's plans on a data set, or those of them that are wanted."""
    found = []
    for path in sorted(args.plans.glob("*.toml")):
        plan = tomllib.loads(path.read_text())
        is_wanted = path.stem in args.names or not args.names
        if is_wanted and (plan["method"], plan.get("set", "mnist")) == (method, of_set):
            found.append(path.stem)
    return found


def experiments(method, args, data, of_set="mnist"):
    """The experiments of a method on a data set, or those of them that were named."""
    names = plans_of(method, args, of_set)
    if not names:
        raise SystemExit(f"expected plans of {method} on {of_set} in {args.plans}, got {args.names or 'none'}")
    return [Experiment(name, SCRIPTS.get(method, method), args, data) for name in names]


def by_set(method, args):
    """For MNIST and the sets like it that have plans of a method: the data and the experiments. Quick runs have digits."""
    for of_set in LIKE_MNIST[:1] if args.quick else LIKE_MNIST:
        if plans_of(method, args, of_set):
            data = data_of(args, of_set)
            yield data, experiments(method, args, data, of_set)


def seeds_of(found):
    """All seeds of some experiments."""
    return sorted({seed for experiment in found for seed in experiment.seeds})
