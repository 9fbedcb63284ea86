"""The site without a service, in headless Chromium: the same answers as the native service, and as fast as a hand.

SUMOUT=target/release/sumout python3 web/test/site.py BUILT [FOLDER]
BUILT is what web/build.sh made; screenshots go to FOLDER.
"""

import functools
import gzip
import http.server
import json
import math
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../serve/web/test"))
from browser import Browser  # noqa: E402
from service import Service, flowers, run  # noqa: E402

TOLERANCE = 1e-6
DIGITS = 300  # rows that are compared
PIXEL_RANGE = 255
ASK = """
    const [path, kind, body] = arguments;
    const { ask } = await import('./ask.js');
    const headers = kind ? { 'content-type': kind } : {};
    const response = await ask(path, { headers, body: body ?? undefined });
    return [response.status, await response.text()];
"""
OPEN = """
    const [name, address] = arguments;
    const bytes = await (await fetch(address)).arrayBuffer();
    const { openModel } = await import('./ask.js');
    await openModel(name, bytes);
"""
PACKAGE = """
    const [address, row] = arguments;
    const { Model } = await import('/npm/index.js');
    const model = await Model.load(await (await fetch(address)).arrayBuffer());
    const rows = new Float32Array(row.map((x) => x ?? NaN));
    return {
        width: model.width, classes: model.classes, columns: model.columns,
        predict: [...model.predict(rows)], posterior: [...model.posterior(rows)],
        logLikelihood: [...model.logLikelihood(rows)], mean: [...model.impute(rows)],
        given: [...model.impute(rows, { class: model.classes[0] })],
        sample: [...model.sample(2, { class: model.classes[1], seed: 3 })],
    };
"""
DROP_MODEL = """
    const [name, address] = arguments;
    const bytes = await (await fetch(address)).arrayBuffer();
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    const drop = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true });
    document.querySelector('#drop-zone').dispatchEvent(drop);
"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, as any host of static pages serves them; addresses are written down."""

    asked = []

    def log_message(self, *_):
        self.asked.append(self.path)


Files.extensions_map = {**Files.extensions_map, ".wasm": "application/wasm"}


class Site:
    def __init__(self, built, service, folder):
        self.service, self.folder, self.built = service, folder, built
        for name in ("flowers", "homes"):  # as a user's own files
            link = os.path.join(built, f"{name}.sumout")
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(service.path(f"{name}.sumout"), link)
        handler = functools.partial(Files, directory=built)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        self.browser = Browser()

    def fresh(self):
        self.browser.open(f"{self.base}/site/index.html")
        self.browser.wait("the first answer", "return document.body.dataset.answers > 0")
        return self.browser

    def run(self, script, *arguments):
        """Runs a script that waits for promises."""
        return self.browser.run(f"return (async () => {{ {script} }})();", *arguments)

    def with_models(self):
        b = self.fresh()
        for name in ("flowers", "homes"):
            self.run(OPEN, name, f"/{name}.sumout")
        return b

    def ask(self, path, rows=None, csv=None):
        """What the engine in the browser answers."""
        kind = "text/csv" if csv else "application/json" if rows is not None else None
        body = csv if csv else None if rows is None else json.dumps({"rows": rows})
        return self.run(ASK, path, kind, body)

    def close(self):
        self.browser.close()
        self.server.shutdown()


def differences(ours, theirs, at="", unit=1):
    """Where two answers differ; numbers relative to a unit, or to their size if that is larger."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or ours.keys() != theirs.keys():
            return [(at, ours, theirs)]
        parts = [differences(ours[key], theirs[key], f"{at}.{key}", unit) for key in theirs]
        return [difference for part in parts for difference in part]
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return [(at, ours, theirs)]
        pairs = enumerate(zip(ours, theirs, strict=True))
        parts = [differences(a, b, f"{at}[{i}]", unit) for i, (a, b) in pairs]
        return [difference for part in parts for difference in part]
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        same = abs(ours - theirs) <= TOLERANCE * max(unit, abs(theirs))
    else:
        same = ours == theirs
    return [] if same else [(at, ours, theirs)]


def with_holes(rows):
    """Every row with other holes: none, a square, every third, nearly all."""
    for i, row in enumerate(rows):
        kind = i % 4
        hole = [
            lambda at: False,
            lambda at, i=i: at // 28 % 28 in range(i % 14, i % 14 + 12) and at % 28 > 10,
            lambda at, i=i: (at * 7 + i) % 3 == 0,
            lambda at, i=i: (at * 13 + i) % 40 != 0,
        ][kind]
        yield [None if hole(at) else x for at, x in enumerate(row)]


def digit_rows(site):
    examples = [
        site.service.json(f"/v1/examples?model=digits&first={first}&count=100")["rows"]
        for first in (0, 100)
    ]
    rows = [row["values"] for part in examples for row in part]
    return list(with_holes((rows * 2)[:DIGITS]))


def flower_rows():
    cells = [line.split(",")[:3] for line in flowers(150).splitlines()[1:]]
    return [[float(a) if a else None, float(b) if b else None, c or None] for a, b, c in cells]


def same_answer(site, path, rows=None, unit=1):
    status, text = site.ask(path, rows)
    assert status == 200, (path, text)
    found = differences(json.loads(text), site.service.json(path, rows), unit=unit)
    assert not found, (path, len(found), found[:3])


def models_and_examples_are_those_of_the_service(site):
    site.with_models()
    for name in ("digits", "flowers", "homes"):
        same_answer(site, f"/v1/models/{name}")
    same_answer(site, "/v1/examples?model=digits&count=40")


def digits_have_the_same_answers(site):
    site.fresh()
    rows = digit_rows(site)
    for first in range(0, len(rows), 100):
        part = rows[first : first + 100]
        same_answer(site, "/v1/predict?model=digits", part)
        same_answer(site, "/v1/impute?model=digits&classes=true", part, PIXEL_RANGE)
        same_answer(site, "/v1/impute?model=digits&deviation=true", part, PIXEL_RANGE)
    print(f"        {len(rows)} rows within {TOLERANCE}")


def tables_have_the_same_answers(site):
    site.with_models()
    rows = flower_rows()
    options = "deviation=true&classes=true&probabilities=true"
    same_answer(site, "/v1/predict?model=flowers", rows)
    same_answer(site, f"/v1/impute?model=flowers&{options}", rows)
    same_answer(site, "/v1/impute?model=flowers&how=median", rows)
    same_answer(site, "/v1/impute?model=flowers&how=mode", rows)
    same_answer(site, "/v1/impute?model=flowers&how=sample&seed=3", rows[:40])
    same_answer(site, "/v1/sample?model=flowers&class=rose&count=20&seed=5")
    same_answer(site, "/v1/explain?model=flowers&level=1&node=0&count=4&seed=2")
    same_answer(site, "/v1/impute?model=homes&deviation=true", [[None, 60, "no"], [70000, None, None]])


def a_csv_file_is_read_by_the_same_reader(site):
    b = site.with_models()
    text = flowers(150)
    path = "/v1/impute?model=flowers&classes=true"
    for body in (text, text.replace(",", ";")):
        status, ours = site.ask(path, csv=body)
        _, theirs = site.service.request(path, body.encode(), "text/csv")
        assert status == 200 and same_table(ours, theirs.decode()), (ours[:200], theirs[:200])
    status, ours = site.ask(path, csv="width,length,colour\n1,2,green\n")
    code, theirs = site.service.request(path, b"width,length,colour\n1,2,green\n", "text/csv")
    assert (status, ours) == (code, theirs.decode()), (ours, theirs)
    assert b.complaints() == []


def same_table(ours, theirs):
    pairs = zip(ours.splitlines(), theirs.splitlines(), strict=True)
    cells = (zip(a.split(","), b.split(","), strict=True) for a, b in pairs)
    return all(a == b or close(a, b) for row in cells for a, b in row)


def close(a, b):
    try:
        return math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return False


def mistakes_are_said_in_the_same_words(site):
    site.with_models()
    for path in (
        "/v1/impute?model=flowers&how=best",
        "/v1/impute?model=flowers&class=daisy",
        "/v1/predict?model=flowers",
    ):
        rows = [[1, 2, "green"]] if "predict" in path else [[1, 2, "red"]]
        status, ours = site.ask(path, rows)
        code, theirs = site.service.request(path, json.dumps({"rows": rows}).encode())
        assert (status, json.loads(ours)) == (code, json.loads(theirs)), (path, ours, theirs)


def the_package_answers(site):
    site.fresh()
    row = flower_rows()[4]
    names = ["blue", "red", "white"]
    answer = site.run(PACKAGE, "/flowers.sumout", [*row[:2], names.index(row[2])])
    native = site.service.json("/v1/impute?model=flowers&classes=true", [row])["rows"][0]
    scores = site.service.json("/v1/predict?model=flowers", [row])["rows"][0]
    assert answer["columns"][2] == {"name": "colour", "categories": names}, answer["columns"]
    assert (answer["width"], answer["classes"]) == (3, ["iris", "rose", "tulip"]), answer
    assert answer["classes"][answer["predict"][0]] == scores["class"], (answer, scores)
    assert not differences(answer["posterior"], scores["posterior"])
    assert not differences(answer["logLikelihood"][0], scores["log_likelihood"])
    assert not differences(answer["mean"][:2], native["values"][:2]), (answer, native)
    assert len(answer["sample"]) == 6 and answer["given"] != answer["mean"]


def a_visitor_rubs_out_pixels(site):
    start = time.time()
    b = site.fresh()
    opened = time.time() - start
    times = []
    for i in range(20):
        before = b.run("return Number(document.body.dataset.answers)")
        b.stroke("#canvas", [(0.2 + 0.03 * i, 0.3), (0.2 + 0.03 * i, 0.34)], duration=5)
        script = f"return Number(document.body.dataset.answers) > {before}"
        b.wait("an answer", script)
        time.sleep(0.1)
        times.append(b.run("return Number(document.body.dataset.milliseconds)"))
    size = site.service.json("/v1/models/digits")["weights"]
    print(f"        {size} weights: first answer after {opened:.2f} s, then")
    print(f"        median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")
    b.click("#tab-look")
    b.wait_count("#samples .class-row", 10)
    b.wait_count("#channels figure", 8)
    if site.folder:
        b.click("#tab-erase")
        b.screenshot(os.path.join(site.folder, "site.png"))
    assert b.complaints() == []


def a_visitor_brings_a_model_and_a_table(site):
    b = site.fresh()
    asked = len(Files.asked)
    b.type("#model-file", site.service.path("flowers.sumout"))
    b.wait_count("#fields input, #fields select", 3)
    assert b.run("return document.querySelector('#model').value") == "flowers"
    b.click("#tab-fill")
    b.type("#file", site.service.path("flowers.csv"))
    b.wait_count("#preview table", 1)
    assert b.text("#fill-status").startswith("150 rows in "), b.text("#fill-status")
    assert Files.asked[asked:] == [], Files.asked[asked:]  # nothing has left the browser
    site.run(DROP_MODEL, "homes.sumout", "/homes.sumout")
    b.wait("homes", "return document.querySelector('#model').value === 'homes'")
    site.run(DROP_MODEL, "broken.sumout", "/site/index.html")
    b.wait_text("#problem", "broken.sumout: ")
    if site.folder:
        b.screenshot(os.path.join(site.folder, "site-fill.png"))


def it_fits_a_phone_in_light_and_dark(site):
    for dark in (False, True):
        browser = Browser(390, 844, dark, mobile=True)
        try:
            browser.open(f"{site.base}/site/index.html")
            browser.wait("an answer", "return document.body.dataset.answers > 0")
            excess = browser.run(
                "const { scrollWidth, clientWidth } = document.documentElement;"
                "return scrollWidth - clientWidth"
            )
            assert excess <= 0, f"{excess} pixels too wide"
            if site.folder:
                name = f"site-phone-{'dark' if dark else 'light'}.png"
                browser.screenshot(os.path.join(site.folder, name))
        finally:
            browser.close()


def it_is_small(site):
    wasm = os.path.join(site.built, "site", "sumout_web_bg.wasm")
    with open(wasm, "rb") as file:
        compressed = len(gzip.compress(file.read()))
    model = os.path.getsize(os.path.join(site.built, "site", "digits.sumout"))
    print(f"        WebAssembly {compressed} bytes compressed, model {model} bytes")
    assert compressed <= 1_500_000 and model <= 4_000_000


TESTS = [
    models_and_examples_are_those_of_the_service,
    digits_have_the_same_answers,
    tables_have_the_same_answers,
    a_csv_file_is_read_by_the_same_reader,
    mistakes_are_said_in_the_same_words,
    the_package_answers,
    a_visitor_rubs_out_pixels,
    a_visitor_brings_a_model_and_a_table,
    it_fits_a_phone_in_light_and_dark,
    it_is_small,
]

if __name__ == "__main__":
    built = sys.argv[1]
    digits = os.path.join(built, "site", "digits.sumout")
    service = Service("--log", "none", models=("flowers", "homes"), files=[f"digits={digits}"])
    site = Site(built, service, sys.argv[2] if len(sys.argv) > 2 else None)
    try:
        failed = run(TESTS, site)
    finally:
        site.close()
        service.close()
    sys.exit(failed > 0)
