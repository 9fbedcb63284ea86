"""Changes modules of the Python package one small thing at a time, and says which change no test notices.

    pip install ./python mutmut==3.8.1 pytest pandas polars pyarrow
    python fuzz/mutants/python.py --results ../python.txt labels columns -- test_cells.py test_files.py -k "not bits"

mutmut makes the mutants: all of them in one copy of the package, each behind a switch. It would try them in
children of a process that has used polars; a child has none of polars' threads and would wait for them for ever.
So here every mutant is a child of a process that has only imported things.

A line of the results is `caught`, `late` (it took too long) or `missed`, and the mutant; `mutmut show MUTANT`, in
the folder beside the results, shows the change. The same command goes on where it was stopped.
"""

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"
SECONDS = 120
WORDS = {0: "missed", 1: "caught", 2: "caught", 3: "caught", -signal.SIGALRM: "late"}


def make_mutants(folder, modules):
    """A copy of the package and its tests in `folder`, with all mutants in `mutants/`."""
    engine = importlib.import_module("sumout._engine").__file__
    shutil.copytree(PYTHON / "sumout", folder / "sumout")
    shutil.copytree(PYTHON / "tests", folder / "tests")
    shutil.copy(engine, folder / "sumout")
    mutated = "".join(f"    sumout/{module}.py\n" for module in modules)
    lists = f"only_mutate=\n{mutated}also_copy=\n    sumout\n    tests\n"
    few = "pytest_add_cli_args_test_selection=tests/test_layers.py"  # they run before the mutants are made
    settings = f"[mutmut]\nsource_paths=sumout\nmutate_only_covered_lines=false\n{lists}{few}\n"
    (folder / "setup.cfg").write_text(settings)
    subprocess.run(["mutmut", "run", "none of them"], check=False, cwd=folder, stdout=subprocess.DEVNULL)


def mutants(folder):
    for path in sorted((folder / "mutants" / "sumout").glob("*.meta")):
        yield from json.loads(path.read_text())["exit_code_by_key"]


def start(mutant, tests):
    """A child that runs the tests with this mutant, or with none."""
    child = os.fork()
    if child:
        return child
    os.environ["MUTANT_UNDER_TEST"] = mutant
    if mutant:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1), os.dup2(nowhere, 2)
        signal.alarm(SECONDS)
    import pytest

    os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("modules", nargs="+")
    split = sys.argv.index("--")
    args = parser.parse_args(sys.argv[1:split])
    tests = [f"tests/{word}" if word.endswith(".py") else word for word in sys.argv[split + 1 :]]
    results = args.results.resolve()
    folder = results.with_suffix("")
    if not folder.exists():
        make_mutants(folder, args.modules)
    os.chdir(folder / "mutants")
    sys.path.insert(0, os.getcwd())
    for name in list(sys.modules):
        if name.startswith("sumout"):
            del sys.modules[name]
    os.environ.update(MUTANT_UNDER_TEST="", SCIPY_ARRAY_API="1")
    for name in ("pandas", "polars", "pyarrow", "pytest", "sklearn.datasets", "sumout"):
        importlib.import_module(name)
    assert os.waitpid(start("", tests), 0)[1] == 0, "the tests fail without a mutant"
    known = results.read_text().splitlines() if results.exists() else []
    done = {line.split()[1] for line in known}
    waiting = [mutant for mutant in mutants(folder) if mutant not in done]
    running = {}
    with open(results, "a", buffering=1) as out:
        while waiting or running:
            while waiting and len(running) < args.at_once:
                mutant = waiting.pop()
                running[start(mutant, tests)] = mutant
            child, status = os.wait()
            code = os.waitstatus_to_exitcode(status)
            out.write(f"{WORDS.get(code, 'caught')} {running.pop(child)}\n")


if __name__ == "__main__":
    main()
