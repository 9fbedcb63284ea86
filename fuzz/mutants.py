"""Do the tests notice? Exchanges operators in source files, one at a time, and runs a command that should then fail.

    python3 fuzz/mutants.py --count 60 engine/src/training/loss.rs -- cargo test --release -p sumout --lib

A mutant that does not compile counts as caught. Files are changed in place and put back: use a clean checkout.
"""

import argparse
import random
import re
import subprocess
import sys

EXCHANGED = {
    **{"+": "- *", "-": "+ /", "*": "+ /", "/": "% *", "%": "/ +", "&&": "||", "||": "&&", "==": "!=", "!=": "=="},
    **{"<": "== > <=", ">": "== < >=", "<=": ">", ">=": "<"},
    **{"+=": "-= *=", "-=": "+= /=", "*=": "+= /=", "/=": "%= *="},
}
OPERATOR = re.compile(r"(?<=[\w)\]] )([-+*/]=|[<>=!]=|&&|\|\||[-+*/%<>])(?= [\w(&*!-])")


def mutants(path):
    """(path, line, place, old, new) of what is not a comment, a text or a test."""
    with open(path) as file:
        code = file.read().split("#[cfg(test)]")[0]
    for found in OPERATOR.finditer(code):
        before = code[code.rfind("\n", 0, found.start()) + 1 : found.start()]
        if "//" in before or before.count('"') % 2 or before.lstrip().startswith(("impl", "fn", "pub fn")):
            continue
        for new in EXCHANGED[found[1]].split():
            yield path, code.count("\n", 0, found.start()) + 1, found.start(), found[1], new


def is_caught(mutant, command):
    path, _, place, old, new = mutant
    with open(path) as file:
        text = file.read()
    try:
        with open(path, "w") as file:
            file.write(text[:place] + new + text[place + len(old) :])
        return subprocess.run(command, capture_output=True, timeout=900).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        with open(path, "w") as file:
            file.write(text)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--count", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=23)
    arguments.add_argument("files", nargs="+")
    end = sys.argv.index("--")
    given, command = arguments.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    subprocess.run(command, check=True, capture_output=True)  # as it is, it passes
    every = [mutant for path in given.files for mutant in mutants(path)]
    sample = random.Random(given.seed).sample(every, min(given.count, len(every)))
    caught = 0
    for mutant in sample:
        if is_caught(mutant, command):
            caught += 1
        else:
            print("missed {}:{}: {} to {}".format(mutant[0], mutant[1], mutant[3], mutant[4]), flush=True)
    print(f"{caught} of {len(sample)} caught, of {len(every)}")


if __name__ == "__main__":
    main()
