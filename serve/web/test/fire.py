"""The service under fire: 64 clients that mix right, wrong, slow, huge and aborted requests, in all formats.

    SUMOUT=target/release/sumout python3 serve/web/test/fire.py --minutes 60

Meanwhile one model is exchanged for another and back, and the file of a second one is damaged. Every answer is compared
with the one that a calm service gave. It ends with an error if an answer is wrong, if a refused request is not told
why, if the service dies, if its memory grows after a warm-up, or if p99 of honest clients is more than three times what
it is when they are alone, half a minute before and half a minute after. Honest clients have a process of their own, so
that they do not wait for the others' Python. It uses the loopback alone.
"""

import argparse
import http.client
import json
import multiprocessing
import random
import shutil
import socket
import threading
import time

from service import TABLES, Service, sumout

JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
BASIC = "/v1/predict?model=flowers"
PATHS = [
    BASIC,
    "/v1/impute?model=flowers",
    "/v1/impute?model=flowers&how=sample&seed=3",
    "/v1/impute?model=flowers&classes=true&deviation=true",
]


class Count:
    """What happened, by name, from many threads."""

    def __init__(self):
        self.lock, self.counts, self.times, self.faults = threading.Lock(), {}, [], []

    def add(self, what, seconds=None):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1
            if seconds is not None:
                self.times.append(seconds)

    def fault(self, what):
        with self.lock:
            self.faults.append(what)

    def percentile(self, share):
        with self.lock:
            return sorted(self.times)[int(share * (len(self.times) - 1))] if self.times else 0.0


def rows(number):
    """Some rows with holes, as JSON, as lines and as CSV."""
    draw = random.Random(number)
    cell = lambda value: None if draw.random() < 0.3 else value  # noqa: E731
    table = [
        [cell(round(draw.uniform(1, 4), 1)), cell(round(draw.uniform(2, 8), 1)), cell("red")]
        for _ in range(draw.choice([1, 2, 30]))
    ]
    text = lambda value: "" if value is None else str(value)  # noqa: E731
    lines = "".join(json.dumps(row) + "\n" for row in table)
    csv = "width,length,colour\n" + "".join(",".join(map(text, row)) + "\n" for row in table)
    return {JSON: json.dumps({"rows": table}), LINES: lines, CSV: csv}


class Client:
    """A connection that is opened again when it was closed."""

    def __init__(self, address):
        self.address, self.connection = address, None

    def ask(self, path, body, kind, accept=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address, timeout=90)
        headers = {"content-type": kind, **({"accept": accept} if accept else {})}
        try:
            method = "GET" if body is None else "POST"
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            return response.status, response.read()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            self.connection = None
            raise


def questions(client):
    """(path, body, format) of honest questions."""
    asked = []
    for number in range(12):
        bodies = rows(number)
        _, arrow = client.ask(PATHS[1], bodies[CSV], CSV, ARROW)
        for path in PATHS:
            asked += [(path, body, kind) for kind, body in bodies.items()]
            asked.append((path, arrow, ARROW))
    return asked


def answers(client, asked):
    found = {}
    for number, (path, body, kind) in enumerate(asked):
        status, answer = client.ask(path, body, kind)
        assert status == 200, (path, kind, answer)
        found[number] = answer
    return found


def is_told_why(status, answer):
    try:
        return 400 <= status < 504 and status != 500 and len(json.loads(answer)["error"]) > 5
    except (ValueError, KeyError):
        return False


def honest(address, asked, right, count, stop, seed):
    client, draw = Client(address), random.Random(seed)
    while not stop.is_set():
        number = draw.randrange(len(asked))
        started = time.monotonic()
        try:
            status, answer = client.ask(*asked[number])
        except (http.client.HTTPException, OSError) as error:
            count.fault(f"an honest client lost its connection: {error!r}")
            continue
        if status == 200 and any(answer == answers[number] for answers in right):
            count.add("right", time.monotonic() - started)
        elif status in (429, 503) and is_told_why(status, answer):
            count.add("busy")
            time.sleep(0.05)
        else:
            count.fault(f"wrong answer to {asked[number][0]}: {status} {answer[:200]!r}")
        time.sleep(0.01)


WRONG = [
    (BASIC, b'{"rows": [[1, 2', JSON, 400),
    (BASIC, b'{"rows": [[1, 2, "pink"]]}', JSON, 400),
    (BASIC, b'{"rows": [[1, 2]]}', JSON, 400),
    (BASIC, b'{"rows": [[1e999, 2, "red"]]}', JSON, 400),
    (BASIC, b"[" * 5000, JSON, 400),
    (BASIC, b"width,length,colour\n1,2,red\n1,x,red\n", CSV, 400),
    (BASIC, b"\xff\xff\xff\xff\x10\x00\x00\x00garbage of sixteen", ARROW, 400),
    (BASIC, b"{}", "text/plain", 415),
    ("/v1/predict?model=../../etc/passwd", b"{}", JSON, 404),
    ("/v1/models/..%2f..%2fetc%2fpasswd", None, JSON, 404),
    ("/v1/nothing", None, JSON, 404),
    ("/v1/impute?model=flowers&how=best", b'{"rows": []}', JSON, 400),
]


def wrong(address, count, stop, seed):
    client, draw = Client(address), random.Random(seed)
    while not stop.is_set():
        path, body, kind, expected = draw.choice(WRONG)
        try:
            status, answer = client.ask(path, body, kind)
        except (http.client.HTTPException, OSError) as error:
            count.fault(f"{path} was cut off: {error!r}")
            continue
        if status in (expected, 429, 503) and is_told_why(status, answer):
            count.add("wrong, refused")
        else:
            count.fault(f"{path} {body[:30] if body else ''}: {status} {answer[:200]!r}")
        time.sleep(0.02)


def raw(address, head, pieces, pause, stop, count):
    """Sends pieces with pauses; the status of the answer, or none if the connection is closed."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=90) as wire:
        try:
            wire.sendall(head)
            for piece in pieces:
                if stop.is_set():
                    return "not done"
                wire.sendall(piece)
                time.sleep(pause)
        except OSError:
            pass  # closed, perhaps with an answer
        try:
            return wire.recv(12)[9:12].decode()
        except OSError:
            return None


def head(length, kind=CSV, path=BASIC):
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-type: {kind}"]
    return ("\r\n".join([*lines, f"content-length: {length}"]) + "\r\n\r\n").encode()


def slow(address, count, stop, seed):
    draw = random.Random(seed)
    while not stop.is_set():
        pieces = (b"1" for _ in range(10_000))
        status = raw(address, head(10_000, draw.choice([JSON, CSV, LINES])), pieces, 0.3, stop, count)
        count.add(f"slow, {status or 'cut off'}")


def huge(address, count, stop, seed):
    draw = random.Random(seed)
    while not stop.is_set():
        kind = draw.choice([JSON, CSV])
        start = b'{"rows": [[1' if kind == JSON else b"width,length,colour\n1,2,"
        pieces = [start, *[b"0" * 65_536] * 400]  # 26 MB, in one number or one cell
        status = raw(address, head(10**9, kind), pieces, 0, stop, count)
        count.add(f"huge, {status or 'cut off'}")
        if status and status not in ("413", "400", "408", "429", "503", "not done"):
            count.fault(f"a huge request got {status}")
        time.sleep(0.2)


def aborted(address, count, stop, seed):
    draw, host, port = random.Random(seed), *address.split(":")
    body = rows(2)[CSV].encode()
    whole = head(len(body)) + body
    while not stop.is_set():
        with socket.create_connection((host, int(port)), timeout=30) as wire:
            sent = draw.choice([whole, bytes(draw.randrange(256) for _ in range(200))])
            try:
                wire.sendall(sent[: draw.randrange(len(sent))])
            except OSError:
                pass
        count.add("aborted")
        time.sleep(0.02)


def exchange(service, count, stop):
    """Exchanges one model for another and back, and damages the file of a second one, twice a second or so."""
    draw, homes = random.Random(0), open(service.path("homes.sumout"), "rb").read()
    while not stop.wait(1.5):
        which = draw.choice(["first", "second"])
        shutil.copy(service.path(f"{which}.sumout"), service.path("new"))
        shutil.move(service.path("new"), service.path("flowers.sumout"))
        damaged = bytearray(homes)
        damaged[draw.randrange(len(homes))] ^= 255
        with open(service.path("homes.sumout"), "wb") as file:  # not at once, as a bad program would
            file.write(damaged[: draw.randrange(len(homes))])
        count.add("exchanged")


def memory(service):
    with open(f"/proc/{service.process.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def growth(sizes):
    """The most memory in either half of a run, MiB, after a warm-up: its first third, at most two minutes."""
    warm = sizes[min(120, len(sizes) // 3) :]
    middle = len(warm) // 2
    return max(warm[:middle]), max(warm[middle:])


def started(jobs, stop, count):
    """A thread for each job, which ends when `stop` is set."""
    threading.excepthook = lambda died: count.fault(f"a client gave up: {died.exc_value!r}")
    threads = [threading.Thread(target=job, args=(*given, count, stop, *more)) for job, given, more in jobs]
    for thread in threads:
        thread.start()
    return threads


def run(seconds, jobs, count, watch=lambda: None):
    """Threads for so long; `watch` is called every second."""
    stop = threading.Event()
    threads = started(jobs, stop, count)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(1)
        watch()
    stop.set()
    for thread in threads:
        thread.join(timeout=120)


BAD = [(wrong, 16), (slow, 8), (huge, 4), (aborted, 12)]


def hostile(address, stop, found):
    """All bad clients, in a process of their own."""
    count = Count()
    jobs = [(job, (address,), (i,)) for job, clients in BAD for i in range(clients)]
    for thread in started(jobs, stop, count):
        thread.join()
    found.put((count.counts, count.faults))


def start():
    """The service with two models of flowers that take turns, and their right answers."""
    service = Service("--reload", "--log", "none", "--max-body", "8", models=("flowers", "homes"))
    address = service.base.removeprefix("http://")
    shutil.copy(service.path("flowers.sumout"), service.path("first.sumout"))
    again = ["--target", "species", "--steps", 150, "--seed", 9]
    sumout("train", "--data", service.path("flowers.csv"), "--out", service.path("second.sumout"), *again)
    client = Client(address)
    asked = questions(client)
    right = [answers(client, asked)]
    for which in ("second", "first"):
        shutil.copy(service.path(f"{which}.sumout"), service.path("new"))
        shutil.move(service.path("new"), service.path("flowers.sumout"))
        time.sleep(4)  # it is seen after a moment
        right.append(answers(client, asked))
    assert right[0] == right[2] != right[1], "two models, and back to the first"
    return service, address, asked, right[:2]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--minutes", type=float, default=60)
    seconds = arguments.parse_args().minutes * 60
    service, address, asked, right = start()
    calm, fire, sizes = Count(), Count(), []
    good = [(honest, (address, asked, right), (i,)) for i in range(24)]
    run(min(30, seconds / 4), good, calm)
    stop, found = multiprocessing.Event(), multiprocessing.Queue()
    bad = multiprocessing.Process(target=hostile, args=(address, stop, found))
    bad.start()
    run(seconds, [*good, (exchange, (service,), ())], fire, lambda: sizes.append(memory(service)))
    stop.set()
    counts, faults = found.get(timeout=120)
    bad.join()
    fire.counts |= counts
    fire.faults += faults
    run(min(30, seconds / 4), good, calm)
    status, _ = Client(address).ask("/healthz", None, JSON)
    for name, number in sorted(fire.counts.items()):
        print(f"{number:10,}  {name}")
    early, late = growth(sizes)
    tenths = [max(sizes[i * len(sizes) // 10 : (i + 1) * len(sizes) // 10]) for i in range(10)]
    print("memory    ", " ".join(f"{size:.0f}" for size in tenths), "MiB at most in every tenth of the time")
    print(f"           {early:.0f} and {late:.0f} MiB in the halves after a warm-up")
    slowed = fire.percentile(0.99) / max(calm.percentile(0.99), 1e-9)
    print(f"p99        {calm.percentile(0.99) * 1e3:.1f} ms calm, {fire.percentile(0.99) * 1e3:.1f} ms under fire: {slowed:.1f} times")
    faults = calm.faults + fire.faults
    faults += [f"health {status}"] * (status != 200) + ["memory grew"] * (late > 1.1 * early + 10)
    faults += ["honest clients were slowed down"] * (slowed > 3)
    faults += [f"{TABLES.keys()} lost"] * (service.process.poll() is not None)
    for fault in faults[:20]:
        print("FAILED ", fault)
    print(f"{len(faults)} faults in {seconds / 60:.0f} minutes")
    service.close()
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
