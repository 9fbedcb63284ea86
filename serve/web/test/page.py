"""The page in headless Chromium: draw, rub out, look inside, fill a table, by pointer and by keyboard.

    SUMOUT=target/release/sumout python3 serve/web/test/page.py [FOLDER]        screenshots go to FOLDER
"""

import os
import statistics
import sys
import time

from browser import Browser
from service import Service, run

ANSWERS = "return Number(document.body.dataset.answers ?? 0)"
CLASS = "return document.querySelector('#verdict-class').textContent"


class Page:
    def __init__(self, service, folder):
        self.service, self.folder = service, folder
        self.browser = Browser()

    def fresh(self):
        self.browser.open(self.service.base)
        self.browser.wait("the first answer", "return document.body.dataset.answers > 0")

    def settled(self, before):
        """Waits until something was answered and nothing more is asked."""
        self.browser.wait("an answer", f"return Number(document.body.dataset.answers) > {before}")
        last = -1
        while last != (last := self.browser.run(ANSWERS)):
            time.sleep(0.15)

    def posterior(self):
        texts = self.browser.run("return [...document.querySelectorAll('#bars .percent')].map((e) => e.textContent)")
        return [float(text.split()[0]) for text in texts]


def pick_and_rub_out_changes_the_class(page):
    page.fresh()
    b = page.browser
    seen = set()
    b.click("#examples button[data-label='7']")
    page.settled(1)
    before = page.posterior()
    assert abs(sum(before) - 100) < 1 and len(before) == 10, before
    count = b.run(ANSWERS)
    for i in range(12):  # the whole sheet, line by line
        seen.add(b.run(CLASS))
        y = (i + 0.5) / 12
        b.stroke("#canvas", [(0.02, y), (0.98, y)])
    page.settled(count)
    b.run("document.querySelector('#brush').value = 8")
    for i in range(8):
        b.stroke("#canvas", [(0.02, (i + 0.5) / 8), (0.98, (i + 0.5) / 8)])
    page.settled(count)
    assert b.text("#observed") in ("0 %", "1 %"), b.text("#observed")
    after = page.posterior()
    assert max(after) < 20 and max(before) > 30, ("nothing observed leaves the prior", before, after)
    b.click("#uncover")
    page.settled(b.run(ANSWERS) - 1)
    assert b.text("#observed") == "100 %"
    assert b.text("#deviation-hint").startswith("Nothing is missing"), b.text("#deviation-hint")


def draw_and_erase_changes_the_class(page):
    page.fresh()
    b = page.browser
    b.click("#blank")
    page.settled(1)
    b.stroke("#canvas", [(0.5, 0.2), (0.5, 0.8)])
    page.settled(b.run(ANSWERS) - 1)
    one = b.run(CLASS)
    b.click("#blank")
    ring = [(0.5, 0.22), (0.34, 0.35), (0.3, 0.5), (0.34, 0.65), (0.5, 0.78), (0.66, 0.65), (0.7, 0.5), (0.66, 0.35), (0.5, 0.22)]
    b.stroke("#canvas", ring)
    page.settled(b.run(ANSWERS) - 1)
    zero = b.run(CLASS)
    assert (one, zero) == ("1", "0"), (one, zero)


def squares_and_random_holes(page):
    page.fresh()
    b = page.browser
    count = b.run(ANSWERS)
    b.click("#square")
    page.settled(count)
    covered = int(b.text("#observed").split()[0])
    assert 85 <= covered < 95, covered
    count = b.run(ANSWERS)
    b.run("const s = document.querySelector('#drop'); s.value = 60; s.dispatchEvent(new Event('input'))")
    page.settled(count)
    assert 25 <= int(b.text("#observed").split()[0]) <= 45, b.text("#observed")
    pictures = b.run("return [...document.querySelectorAll('#mean, #deviation, #draws canvas')].map((c) => c.toDataURL().length)")
    assert len(pictures) == 6 and min(pictures) > 500, pictures


def from_stroke_to_bars(page):
    page.fresh()
    b = page.browser
    times = []
    for i in range(20):
        count = b.run(ANSWERS)
        b.stroke("#canvas", [(0.2 + 0.03 * i, 0.3), (0.2 + 0.03 * i, 0.32)], duration=5)
        page.settled(count)
        times.append(b.run("return Number(document.body.dataset.milliseconds)"))
    print(f"        from stroke to bars: median {statistics.median(times):.0f} ms, slowest of {len(times)} {max(times):.0f} ms")


def keyboard_alone(page):
    page.fresh()
    b = page.browser
    b.run("document.activeElement.blur()")
    focused = "return document.activeElement.id || document.activeElement.value || document.activeElement.name || ''"
    seen = []
    for _ in range(12):
        b.keys("Tab")
        seen.append(b.run(focused))
    for wanted in ("tab-rub", "canvas", "brush", "drop", "square"):
        assert wanted in seen, (wanted, seen)
    b.run("document.querySelector('#canvas').focus()")
    before = b.text("#observed")
    count = b.run(ANSWERS)
    b.keys("Up", "Up", "Left", "Space", "Down", "Down", "Space")
    page.settled(count)
    assert b.text("#observed") != before
    b.keys("d")
    assert b.run("return document.querySelector('[name=tool]:checked').value") == "draw"
    b.run("document.querySelector('#tab-rub').focus()")
    b.keys("Right")
    b.wait("the second view", "return !document.querySelector('#look').hidden && document.activeElement.id === 'tab-look'")
    b.wait("neurons", "return document.querySelectorAll('#channels figure').length === 8")
    name = b.text("#node-name")
    b.run("document.querySelector('#grid').focus()")
    b.keys("Left")
    b.wait("another place", "return document.querySelector('#node-name').textContent !== arguments[0]", name)


def samples_and_neurons(page):
    page.fresh()
    b = page.browser
    b.click("#tab-look")
    b.wait("samples of ten classes", "return document.querySelectorAll('#samples .class-row').length === 10")
    b.wait("channels", "return document.querySelectorAll('#channels figure').length === 8")
    first = b.run("return document.querySelector('#samples canvas').toDataURL()")
    b.click("#again")
    b.wait("other samples", "return document.querySelector('#samples canvas').toDataURL() !== arguments[0]", first)
    b.click("#levels label:nth-child(1)")
    b.wait("leaves", "return document.querySelector('#node-name').textContent.startsWith('Leaves')")
    b.stroke("#grid", [(0.1, 0.1)])
    b.wait("a place", "return document.querySelector('#channels figcaption').textContent.startsWith('channel')")


def csv_there_and_back(page):
    page.fresh()
    b = page.browser
    b.run("const m = document.querySelector('#model'); m.value = 'flowers'; m.dispatchEvent(new Event('change'))")
    b.click("#tab-fill")
    b.type("#file", page.service.path("flowers.csv"))
    b.wait("the table", "return !document.querySelector('#preview').hidden")
    folder = page.service.folder.name
    b.post("/goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": {"behavior": "allow", "downloadPath": folder}})
    b.click("#download")
    path = page.service.path("flowers-filled.csv")
    end = time.time() + 15
    while not os.path.exists(path) and time.time() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    with open(path) as file:
        text = file.read()
    lines = text.splitlines()
    assert lines[0] == "width,length,colour,species,class,p_iris,p_rose,p_tulip,log_likelihood", lines[0]
    with open(page.service.path("flowers.csv")) as file:
        before = [line.split(",") for line in file.read().splitlines()]
    after = [line.split(",") for line in lines]
    assert len(before) == len(after)
    for old, new in zip(before[1:], after[1:]):
        assert all(b == a if b else a for b, a in zip(old[:3], new[:3])), (old, new)
        assert abs(sum(map(float, new[5:8])) - 1) < 1e-6
    marked = b.run("return document.querySelectorAll('#preview .filled').length")
    holes = sum(cell == "" for row in before[1:9] for cell in row[:3])
    assert marked == holes, (marked, holes)
    assert b.run("return document.querySelector('#download').download") == "flowers-filled.csv"
    dropped = ("const d = new DataTransfer(); d.items.add(new File(['width,length\\n1,2\\n'], 'bad.csv'));"
               "document.querySelector('#drop-zone').dispatchEvent(new DragEvent('drop', {dataTransfer: d, bubbles: true, cancelable: true}))")
    b.run(dropped)
    b.wait("what is wrong", "return document.querySelector('#problem').textContent.includes(\"expected a column 'colour'\")")


def a_form_for_tables(page):
    page.fresh()
    b = page.browser
    b.run("const m = document.querySelector('#model'); m.value = 'flowers'; m.dispatchEvent(new Event('change'))")
    b.wait("the form", "return document.querySelectorAll('#table-ask input, #table-ask select').length === 3")
    b.wait("three bars", "return document.querySelectorAll('#bars li').length === 3")
    count = b.run(ANSWERS)
    b.type("#column-1", "6.9")
    page.settled(count)
    assert b.text("#verdict-class") == "tulip", b.text("#verdict-class")
    assert b.run("return document.querySelectorAll('#table-answer .filled').length") == 2
    assert b.text("#tab-rub") == "Ask", b.text("#tab-rub")
    hidden = "return document.querySelector(arguments[0]).hidden"
    assert b.run(hidden, "#warning")
    value = "const c = document.querySelector('#column-1'); c.value = arguments[0]; c.dispatchEvent(new Event('input', {bubbles: true}))"
    b.run(value, "1e30")
    b.wait("a warning", "return document.querySelector('#warning').textContent.includes('too unlike the training data')")
    b.run(value, "1e39")
    b.wait("what is wrong", "return document.querySelector('#problem').textContent.includes('expected a finite number')")
    assert b.text("#verdict-class") == "–" and b.text("#verdict-p") == "" and b.run(hidden, "#warning") and b.run("return document.querySelectorAll('#bars li').length") == 0


def light_dark_and_phone(page):
    for name, options in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844, "mobile": True})):
        browser = Browser(**options)
        try:
            browser.open(page.service.base)
            browser.wait("an answer", "return document.body.dataset.answers > 0")
            browser.stroke("#canvas", [(0.3, 0.25), (0.65, 0.35), (0.35, 0.5)])
            browser.run("const s = document.querySelector('#drop'); s.value = 20; s.dispatchEvent(new Event('input'))")
            time.sleep(0.6)
            theme = browser.run("return document.documentElement.dataset.theme")
            assert theme == ("dark" if name == "dark" else "light"), theme
            wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name}: {wide} pixels too wide"
            if page.folder:
                browser.screenshot(os.path.join(page.folder, f"{name}.png"))
            complaints = browser.complaints()
            assert not complaints, complaints
        finally:
            browser.close()


if __name__ == "__main__":
    service = Service("--log", "none")
    page = Page(service, sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        failed = run([pick_and_rub_out_changes_the_class, draw_and_erase_changes_the_class, squares_and_random_holes, from_stroke_to_bars,
                      keyboard_alone, samples_and_neurons, csv_there_and_back, a_form_for_tables, light_dark_and_phone], page)
    finally:
        page.browser.close()
        service.close()
    sys.exit(failed > 0)
