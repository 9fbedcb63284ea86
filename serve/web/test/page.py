"""The page in headless Chromium, by pointer and by keyboard.

SUMOUT=target/release/sumout python3 serve/web/test/page.py [FOLDER]        screenshots go to FOLDER
"""

import os
import statistics
import sys
import time

from browser import Browser
from service import Service, run

ANSWERS = "return Number(document.body.dataset.answers ?? 0)"
FOCUSED = """
    const { id, value, name } = document.activeElement;
    return id || value || name || '';
"""
DROP_BAD_FILE = """
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['width,length\\n1,2\\n'], 'bad.csv'));
    const drop = new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true });
    document.querySelector('#drop-zone').dispatchEvent(drop);
"""
RING = [
    *[(0.5, 0.22), (0.34, 0.35), (0.3, 0.5), (0.34, 0.65), (0.5, 0.78)],
    *[(0.66, 0.65), (0.7, 0.5), (0.66, 0.35), (0.5, 0.22)],
]


class Page:
    def __init__(self, service, folder):
        self.service, self.folder = service, folder
        self.browser = Browser()

    def fresh(self):
        self.browser.open(self.service.base)
        self.browser.wait("the first answer", "return document.body.dataset.answers > 0")
        return self.browser

    def settled(self, before):
        """Waits until there are more answers than `before`, and no more come."""
        self.browser.wait("an answer", f"return Number(document.body.dataset.answers) > {before}")
        last = -1
        while last != (last := self.browser.run(ANSWERS)):
            time.sleep(0.15)

    def answers(self):
        return self.browser.run(ANSWERS)

    def observed(self):
        return int(self.browser.text("#observed").split()[0])

    def tool(self):
        return self.browser.run("return document.querySelector('[name=tool]:checked').value")

    def posterior(self):
        return [float(text.split()[0]) for text in self.browser.texts("#bars .percent")]


def erasing_everything_leaves_the_prior(page):
    b = page.fresh()
    b.click("#examples button[data-label='7']")
    page.settled(1)
    before = page.posterior()
    assert abs(sum(before) - 100) < 1 and len(before) == 10, before
    count = page.answers()
    b.run("document.querySelector('#brush').value = 8")
    for i in range(12):
        b.stroke("#canvas", [(0.02, (i + 0.5) / 12), (0.98, (i + 0.5) / 12)])
    page.settled(count)
    assert page.observed() <= 1, page.observed()
    after = page.posterior()
    assert max(after) < 20 and max(before) > 30, (before, after)
    b.click("#restore-all")
    page.settled(page.answers() - 1)
    assert page.observed() == 100, page.observed()
    assert b.text("#deviation-hint").startswith("Nothing is missing"), b.text("#deviation-hint")


def a_stroke_is_restored_by_another(page):
    b = page.fresh()
    count = page.answers()
    line = [(0.1, 0.5), (0.9, 0.5)]
    b.stroke("#canvas", line)
    page.settled(count)
    assert page.observed() < 100, page.observed()
    count = page.answers()
    b.keys("r")
    assert page.tool() == "restore", page.tool()
    b.stroke("#canvas", line)
    page.settled(count)
    assert page.observed() == 100, page.observed()
    b.keys("e")
    assert page.tool() == "erase", page.tool()


def drawn_digits_are_recognised(page):
    b = page.fresh()
    b.click("#blank")
    page.settled(1)
    b.stroke("#canvas", [(0.5, 0.2), (0.5, 0.8)])
    page.settled(page.answers() - 1)
    one = b.text("#verdict-class")
    b.click("#blank")
    b.stroke("#canvas", RING)
    page.settled(page.answers() - 1)
    zero = b.text("#verdict-class")
    assert (one, zero) == ("1", "0"), (one, zero)


def squares_and_random_missing_pixels(page):
    b = page.fresh()
    count = page.answers()
    b.click("#square")
    page.settled(count)
    assert 85 <= page.observed() < 95, page.observed()
    count = page.answers()
    b.set_value("#drop", 60)
    page.settled(count)
    assert 25 <= page.observed() <= 45, page.observed()
    pictures = b.pictures("#mean, #deviation, #draws canvas")
    assert len(pictures) == 6 and min(map(len, pictures)) > 500, list(map(len, pictures))


def time_from_stroke_to_bars(page):
    b = page.fresh()
    times = []
    for i in range(20):
        count = page.answers()
        b.stroke("#canvas", [(0.2 + 0.03 * i, 0.3), (0.2 + 0.03 * i, 0.32)], duration=5)
        page.settled(count)
        times.append(b.run("return Number(document.body.dataset.milliseconds)"))
    median, slowest = statistics.median(times), max(times)
    print(f"        median {median:.0f} ms, slowest of {len(times)} {slowest:.0f} ms")


def keyboard_alone(page):
    b = page.fresh()
    b.run("document.activeElement.blur()")
    seen = []
    for _ in range(12):
        b.keys("Tab")
        seen.append(b.run(FOCUSED))
    for wanted in ("tab-erase", "canvas", "brush", "drop", "square"):
        assert wanted in seen, (wanted, seen)
    b.focus("#canvas")
    before = page.observed()
    count = page.answers()
    b.keys("Up", "Up", "Left", "Space", "Down", "Down", "Space")
    page.settled(count)
    assert page.observed() != before
    b.keys("d")
    assert page.tool() == "draw", page.tool()
    b.focus("#tab-erase")
    b.keys("Right")
    b.wait("the second view", "return !document.querySelector('#look').hidden")
    assert b.run(FOCUSED) == "tab-look"
    b.wait_count("#channels figure", 8)
    name = b.text("#node-name")
    b.focus("#grid")
    b.keys("Left")
    b.wait_change("#node-name", name)


def samples_and_channels(page):
    b = page.fresh()
    b.click("#tab-look")
    b.wait_count("#samples .class-row", 10)
    b.wait_count("#channels figure", 8)
    first = b.pictures("#samples canvas")[0]
    b.click("#again")
    b.wait(
        "other samples",
        "return document.querySelector('#samples canvas').toDataURL() !== arguments[0]",
        first,
    )
    name = b.text("#node-name")
    b.click("#levels label:nth-child(1)")
    b.wait_change("#node-name", name)
    name = b.text("#node-name")
    assert name.startswith("Leaves, node "), name
    b.stroke("#grid", [(0.1, 0.1)])
    b.wait_change("#node-name", name)
    assert b.text("#channels figcaption").startswith("channel ")


def a_csv_file_is_filled(page):
    b = page.fresh()
    b.set_value("#model", "flowers", "change")
    b.click("#tab-fill")
    b.type("#file", page.service.path("flowers.csv"))
    b.wait("the preview", "return !document.querySelector('#preview').hidden")
    lines = download(page, "flowers-filled.csv").splitlines()
    names = "width,length,colour,species,class,p_iris,p_rose,p_tulip,log_likelihood"
    assert lines[0] == names, lines[0]
    with open(page.service.path("flowers.csv")) as file:
        before = [line.split(",") for line in file.read().splitlines()]
    after = [line.split(",") for line in lines]
    for old, new in zip(before[1:], after[1:], strict=True):
        pairs = zip(old[:3], new[:3], strict=True)
        assert all(b == a if b else a for b, a in pairs), (old, new)
        assert abs(sum(map(float, new[5:8])) - 1) < 1e-6
    holes = sum(cell == "" for row in before[1:9] for cell in row[:3])
    assert b.count("#preview .filled") == holes, (b.count("#preview .filled"), holes)
    b.run(DROP_BAD_FILE)
    b.wait_text("#problem", "expected a column 'colour'")


def download(page, name):
    """Clicks the link and reads the file."""
    b = page.browser
    assert b.run("return document.querySelector('#download').download") == name
    params = {"behavior": "allow", "downloadPath": page.service.folder.name}
    b.devtools("Browser.setDownloadBehavior", params)
    b.click("#download")
    path = page.service.path(name)
    end = time.time() + 15
    while not os.path.exists(path) and time.time() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    with open(path) as file:
        return file.read()


def a_form_for_tables(page):
    b = page.fresh()
    b.set_value("#model", "flowers", "change")
    b.wait_count("#table-ask input, #table-ask select", 3)
    b.wait_count("#bars li", 3)
    count = page.answers()
    b.type("#column-1", "6.9")
    page.settled(count)
    assert b.text("#verdict-class") == "tulip", b.text("#verdict-class")
    assert b.count("#table-answer .filled") == 2
    assert b.text("#tab-erase") == "Predict", b.text("#tab-erase")
    assert b.is_hidden("#warning")
    b.set_value("#column-1", "1e30")
    b.wait_text("#warning", "This row is too ")
    b.set_value("#column-1", "1e39")
    b.wait_text("#problem", "expected a finite number")
    assert (b.text("#verdict-class"), b.text("#verdict-p")) == ("–", "")
    assert b.is_hidden("#warning") and b.count("#bars li") == 0


def samples_and_channels_of_a_table(page):
    b = page.fresh()
    b.set_value("#model", "flowers", "change")
    b.click("#tab-look")
    b.wait_count("#samples tbody tr", 15)
    b.wait("channels", "return document.querySelectorAll('#channels figure table').length > 0")
    name = b.text("#node-name")
    b.click("#levels label:nth-child(1)")
    b.wait_change("#node-name", name)
    name = b.text("#node-name")
    b.click("#nodes button:nth-child(2)")
    b.wait_change("#node-name", name)
    assert b.text("#node-name") == "Leaves, node 1", b.text("#node-name")


def colours_are_chosen(page):
    b = page.fresh()
    count = page.answers()
    b.stroke("#canvas", [(0.3, 0.3), (0.7, 0.7)])
    page.settled(count)
    observed = page.observed()
    themes = []
    for _ in range(3):
        count = page.answers()
        b.click("#theme")
        page.settled(count)
        themes.append((b.text("#theme"), b.run("return document.documentElement.dataset.theme")))
        assert page.observed() == observed, "the image being edited stays"
    assert themes == [("☀", "light"), ("☾", "dark"), ("◐", "light")], themes


def light_and_dark_on_desk_and_phone(page):
    sizes = {"desk": {}, "phone": {"width": 390, "height": 844, "mobile": True}}
    for size, options in sizes.items():
        for dark in (False, True):
            browser = Browser(**options, dark=dark)
            try:
                name = f"{size}-{'dark' if dark else 'light'}"
                every_view_fits(browser, page, name)
                theme = browser.run("return document.documentElement.dataset.theme")
                assert theme == ("dark" if dark else "light"), theme
                complaints = browser.complaints()
                assert not complaints, complaints
            finally:
                browser.close()


def every_view_fits(browser, page, name):
    browser.open(page.service.base)
    browser.wait("an answer", "return document.body.dataset.answers > 0")
    browser.stroke("#canvas", [(0.3, 0.25), (0.65, 0.35), (0.35, 0.5)])
    browser.set_value("#drop", 20)
    for view in ("erase", "look", "fill"):
        browser.click(f"#tab-{view}")
        time.sleep(0.8)
        excess = browser.run(
            "const { scrollWidth, clientWidth } = document.documentElement;"
            "return scrollWidth - clientWidth"
        )
        assert excess <= 0, f"{name}, {view}: {excess} pixels too wide"
        if page.folder:
            browser.screenshot(os.path.join(page.folder, f"{name}-{view}.png"))


TESTS = [
    erasing_everything_leaves_the_prior,
    a_stroke_is_restored_by_another,
    drawn_digits_are_recognised,
    squares_and_random_missing_pixels,
    time_from_stroke_to_bars,
    keyboard_alone,
    samples_and_channels,
    a_csv_file_is_filled,
    a_form_for_tables,
    samples_and_channels_of_a_table,
    colours_are_chosen,
    light_and_dark_on_desk_and_phone,
]

if __name__ == "__main__":
    service = Service("--log", "none")
    page = Page(service, sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        failed = run(TESTS, page)
    finally:
        page.browser.close()
        service.close()
    sys.exit(failed > 0)
