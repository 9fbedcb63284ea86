"""Starts `sumout serve` for a test and ends it."""

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request

PROGRAM = os.environ["SUMOUT"]


def sumout(*arguments):
    subprocess.run(
        [PROGRAM, *map(str, arguments)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def flowers(rows):
    """A table with holes: three kinds of flowers."""
    lines = ["width,length,colour,species"]
    for i in range(rows):
        kind = i % 3
        width = "" if i % 7 == 3 else f"{1 + kind + i * 5 % 17 / 10:.1f}"
        length = "" if i % 5 == 4 else f"{2 + 2 * kind + i * 11 % 17 / 10:.1f}"
        colour = "" if i % 11 == 6 else ["red", "blue", "red", "white"][(kind + i // 30) % 4]
        lines.append(f"{width},{length},{colour},{['iris', 'rose', 'tulip'][kind]}")
    return "\n".join(lines) + "\n"


def gauges(rows):
    """All that is hard to show: 200 columns and 50 classes, all with names of 50 characters."""
    names = [f"average_daily_household_consumption_kilowatthour_{i:03}" for i in range(199)]
    lines = [",".join([*names, "a long name of a category of fifty characters size", "town"])]
    for i in range(rows):
        cells = [f"{(i % 50) + (i * j % 97) / 10:.2f}" for j in range(199)]
        kind = f"a category with a name of about fifty letters no {i % 6}"
        town = f"Llanfairpwllgwyngyllgogerychwyrndrobwllllanty-{i % 50:03}"
        lines.append(",".join([*cells, kind, town]))
    return "\n".join(lines) + "\n"


def homes(rows):
    """A table without classes; its price needs five digits."""
    lines = ["price,area,garden"]
    for i in range(rows):
        area = 40 + i * 7 % 90
        lines.append(f"{900 * area + i * 13 % 500},{area},{'yes' if area > 80 else 'no'}")
    return "\n".join(lines) + "\n"


TABLES = {"flowers": flowers(150), "gauges": gauges(400), "homes": homes(150), "prices": homes(150)}
TRAIN = {
    "flowers": ("--target", "species", "--steps", 200),
    "gauges": ("--target", "town", "--steps", 20),
    "homes": ("--steps", 100),
    "prices": ("--target", "price", "--regression", "--steps", 100),
    "digits": ("--steps", 250),
}


class Service:
    """Models of digits and of tables, each trained for a few seconds."""

    def __init__(self, *options, models=("digits", "flowers"), files=()):
        self.folder = tempfile.TemporaryDirectory()
        path = self.path
        for name, text in TABLES.items():
            with open(path(f"{name}.csv"), "w") as file:
                file.write(text)
        for name in models:
            data = path(f"{name}.csv") if name in TABLES else name
            sumout("train", "--data", data, "--out", path(f"{name}.sumout"), *TRAIN[name])
        files = [*(path(f"{name}.sumout") for name in models), *files]
        options = [option.replace("FOLDER", self.folder.name) for option in options]
        command = [PROGRAM, "serve", *files, "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.base = line.split(" on ")[1].split(" ")[0]

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def request(self, path, body=None, kind="application/json", accept=None):
        """Status and bytes of the response."""
        headers = {"content-type": kind, **({"accept": accept} if accept else {})}
        request = urllib.request.Request(self.base + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path, rows=None):
        status, text = self.request(
            path, None if rows is None else json.dumps({"rows": rows}).encode()
        )
        assert status == 200, (status, text)
        return json.loads(text)

    def close(self):
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.folder.cleanup()
        assert code == 0, code


def run(tests, service):
    """Runs tests, prints which passed, and returns how many failed."""
    failed = 0
    for test in tests:
        try:
            test(service)
            print(f"ok      {test.__name__.replace('_', ' ')}", flush=True)
        except Exception as error:  # the other tests run too
            failed += 1
            print(
                f"FAILED  {test.__name__.replace('_', ' ')}: {type(error).__name__}: {error}",
                flush=True,
            )
    print(f"{len(tests) - failed} of {len(tests)} passed")
    return failed
