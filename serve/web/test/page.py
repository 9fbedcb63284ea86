"""The page in headless Chromium, by pointer and by keyboard.

SUMOUT=target/release/sumout python3 serve/web/test/page.py [FOLDER]        screenshots go to FOLDER
"""

import os
import re
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


# Every request is written down, and answered later by as many milliseconds as a rule says.
SLOW_SERVICE = """
    const [delays] = arguments;
    const fetched = window.fetch;
    window.requests = [];
    window.fetch = async (path, options) => {
        window.requests.push({ path, options });
        const response = await fetched(path, options);
        const rule = Object.keys(delays).find((part) => path.includes(part));
        if (rule) await new Promise((resolve) => setTimeout(resolve, delays[rule]));
        return response;
    };
"""
# So many changes, each so many milliseconds after the one before.
CHANGES = """
    const [count, pause] = arguments;
    const drop = document.querySelector('#drop');
    const change = (value) => () => {
        drop.value = value;
        drop.dispatchEvent(new Event('input', { bubbles: true }));
    };
    for (let i = 1; i <= count; i++) setTimeout(change(i), i * pause);
"""
# Elements that stick out of their card, and text that is cut; what scrolls may.
MISFITS = """
    const name = (e) => `${e.tagName} ${e.id || e.className} ${e.textContent.slice(0, 30)}`;
    const scrolls = (e) => e.closest('.scroll, .strip, .quiet, #fields, #nodes, .bar');
    const seen = (e) => e.checkVisibility() && e.getBoundingClientRect().width > 1;
    const sticksOut = (card) => [...card.querySelectorAll('*')].filter((e) => seen(e) &&
        !scrolls(e) && e.getBoundingClientRect().right > card.getBoundingClientRect().right);
    const isCut = (e) => seen(e) && e.scrollWidth > e.clientWidth + 1;
    const cut = [...document.querySelectorAll('input, .field, .field label, .strip button, .bars')];
    return [
        ...[...document.querySelectorAll('.card')].filter(seen).flatMap(sticksOut),
        ...cut.filter(isCut),
    ].map(name);
"""


class Page:
    def __init__(self, service, folder):
        self.service, self.folder = service, folder
        self.browser = Browser()

    def fresh(self, model=None):
        self.browser.open(self.service.base)
        self.browser.wait("the first answer", "return document.body.dataset.answers > 0")
        if model:
            self.browser.set_value("#model", model, "change")
            self.rested()
        return self.browser

    def rested(self):
        """Waits until everything is there, samples too."""
        ready = "document.querySelector('#answer').ariaBusy === 'false'"
        drawn = "document.querySelector('#draws').ariaBusy === 'false'"
        self.browser.wait("samples", f"return {ready} && {drawn}")

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


def the_page_opens_with_a_hole(page):
    b = page.fresh()
    page.rested()
    assert 80 <= page.observed() < 95, page.observed()
    assert b.text("#deviation-hint").startswith("Uncertainty"), b.text("#deviation-hint")


def a_stroke_is_restored_by_another(page):
    b = page.fresh()
    count = page.answers()
    b.click("#restore-all")
    page.settled(count)
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
    b.click("#restore-all")
    page.settled(count)
    count = page.answers()
    b.click("#square")
    page.settled(count)
    assert 85 <= page.observed() < 95, page.observed()
    count = page.answers()
    b.set_value("#drop", 60)
    page.settled(count)
    assert 25 <= page.observed() <= 45, page.observed()
    page.rested()
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


def samples_wait_until_the_hand_rests(page):
    b = page.fresh()
    page.rested()
    b.run(SLOW_SERVICE, {})
    b.run(CHANGES, 8, 100)
    b.wait("the last change", "return document.querySelector('#drop').value === '8'")
    page.rested()
    asked = b.run(
        "return window.requests.map(({ path, options }) =>"
        "[path, JSON.parse(options.body).rows.length, options.signal.aborted])"
    )
    drawn = [(rows, aborted) for path, rows, aborted in asked if "how=sample" in path]
    kept = [rows for rows, aborted in drawn if not aborted]
    assert len(asked) >= 5 and not any("draws=" in path for path, *_ in asked), asked
    assert kept in ([4], [1, 1, 1, 1]), drawn  # one by one where the machine was slow
    assert len(drawn) - len(kept) <= 1, drawn


def samples_of_an_old_row_are_abandoned(page):
    b = page.fresh()
    page.rested()
    b.run(SLOW_SERVICE, {"how=sample": 700})
    b.click("#square")
    samples = "window.requests.filter(({ path }) => path.includes('how=sample'))"
    b.wait("samples", f"return {samples}.length === 1")
    b.click("#restore-all")
    b.wait("the end of the first", f"return {samples}[0].options.signal.aborted")
    page.rested()
    assert len(b.pictures("#draws canvas")) == 4 and b.is_hidden("#problem")


def a_slow_mean_waits_until_the_hand_rests(page):
    b = page.fresh()
    page.rested()
    b.run(SLOW_SERVICE, {"impute": 400})
    b.stroke("#canvas", [(0.1, 0.3), (0.2, 0.3)])  # from here on it is known to be slow
    page.rested()
    count = page.answers()
    b.run("window.requests.length = 0")
    b.stroke("#canvas", [(0.1 + 0.02 * i, 0.5) for i in range(30)], duration=30)
    assert page.answers() - count >= 2, "classes follow the hand"
    page.rested()
    paths = b.run("return window.requests.map(({ path }) => path)")
    means = [path for path in paths if "deviation" in path]
    assert len(means) == 1, paths
    bodies = b.run("return window.requests.map(({ options }) => JSON.parse(options.body))")
    asked = zip(paths, bodies, strict=True)
    drawn = [len(body["rows"]) for path, body in asked if "how=sample" in path]
    assert drawn == [1, 1, 1, 1], drawn
    assert b.run("return document.querySelector('#completion').ariaBusy") == "false"


def no_answer_under_another_name(page):
    b = page.fresh()
    page.rested()
    old = b.text("#verdict-class")
    b.run(SLOW_SERVICE, {"/v1/": 700})
    b.click("#square")
    b.set_value("#model", "flowers", "change")
    assert (b.text("#verdict-class"), b.count("#bars li")) == ("–", 0), b.text("#verdict-class")
    assert b.run("return document.querySelector('#answer').ariaBusy") == "true"
    aborted = b.run("return window.requests.map(({ options }) => options.signal.aborted)")
    assert aborted[0], aborted
    shown = b.wait(
        "an answer",
        "const name = document.querySelector('#verdict-class').textContent;"
        "return name !== '–' && name",
    )
    assert shown in ("iris", "rose", "tulip"), (old, shown)
    page.rested()
    assert b.is_hidden("#problem"), b.text("#problem")
    b.set_value("#model", "homes", "change")
    b.set_value("#model", "digits", "change")
    assert b.count("#table-answer tr") == 0
    page.rested()
    assert b.count("#bars li") == 10 and page.observed() < 95


def keyboard_alone(page):
    b = page.fresh()
    b.run("document.activeElement.blur()")
    seen = []
    for _ in range(12):
        b.keys("Tab")
        seen.append(b.run(FOCUSED))
    for wanted in ("tab-erase", "canvas", "brush", "drop", "square"):
        assert wanted in seen, (wanted, seen)
    count = page.answers()
    b.click("#restore-all")
    page.settled(count)
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
    b.wait_count("#preview table", 1)
    heads = b.texts("#preview th")
    assert heads == ["class", "probability", "width", "length", "colour", "species"], heads
    assert b.text("#preview td") in ("iris", "rose", "tulip"), b.text("#preview td")
    assert b.text("#preview td:nth-child(2)").endswith(" %"), b.text("#preview td:nth-child(2)")
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


def records_are_counted(page):
    b = page.fresh("flowers")
    b.click("#tab-fill")
    path = page.service.path("notes.csv")
    with open(path, "w") as file:
        file.write("width,length,colour,note\n")
        file.write('1.5,,red,"a line\nand ""another"" one"\n' * 60)
    b.type("#file", path)
    b.wait_count("#preview table", 1)
    assert b.text("#fill-status").startswith("60 rows in "), b.text("#fill-status")
    assert (b.count("#preview tbody tr"), b.count("#preview .filled")) == (8, 8)
    with open(path, "w") as file:
        file.write("width;length;colour\n1.5;;red\n")
    b.type("#file", path)
    b.wait_text("#fill-status", "1 row in ")
    b.wait_count("#preview .filled", 1)


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
    b.wait_count("#fields input, #fields select", 3)
    b.wait_count("#bars li", 3)
    count = page.answers()
    b.type("#column-1", "6.9")
    page.settled(count)
    assert b.text("#verdict-class") == "tulip", b.text("#verdict-class")
    assert b.count("#table-answer .filled") == 2
    belief = b.text("#table-answer td.filled")
    assert re.fullmatch(r"\d+\.\d+ ± \d\.\d+", belief), belief
    shares = [float(text.split()[0]) for text in b.texts("#table-answer .bars .percent")]
    assert b.count("#table-answer .bars") == 1 and abs(sum(shares) - 100) < 0.2, shares
    assert b.text("#tab-erase") == "Predict", b.text("#tab-erase")
    assert b.is_hidden("#warning")
    b.set_value("#column-1", "1e30")
    b.wait_text("#warning", "This row is too ")
    b.set_value("#column-1", "1e39")
    b.wait_text("#problem", "expected a finite number")
    assert (b.text("#verdict-class"), b.text("#verdict-p")) == ("–", "")
    assert b.is_hidden("#warning") and b.count("#bars li") == 0


def numbers_have_no_more_digits_than_were_written(page):
    """With examples, of which the first has no hole; the page leaves one."""
    options = ("--log", "none", "--examples", "FOLDER/flowers.csv")
    service = Service(*options, models=("flowers",))
    try:
        b = page.browser
        b.open(service.base)
        page.rested()
        fields = b.run("return [0, 1, 2].map((i) => document.querySelector(`#column-${i}`).value)")
        assert fields == ["", "2", "red"], fields
        b.click("#examples-strip button:nth-child(2)")
        page.rested()
        fields = b.run("return [0, 1].map((i) => document.querySelector(`#column-${i}`).value)")
        assert fields == ["2.5", "5.1"], fields
        assert b.text("#table-hint").startswith("Nothing is missing"), b.text("#table-hint")
        misfits = b.run(MISFITS)
        assert not misfits, misfits
    finally:
        service.close()


def numbers_are_rounded_for_people(page):
    b = page.fresh()
    calls = {
        "fixed(-1e-9, 1)": "0.0",
        "fixed(-0.06, 1)": "−0.1",
        "shown(2.559999942779541)": "2.56",
        "shown(1234567.8)": "1234568",
        "shown(-0.000012345)": "−0.00001234",
        "withDeviation(3.1034, 0.4213)": "3.10 ± 0.42",
        "withDeviation(48211.3, 15234.2)": "48211 ± 15234",
        "withDeviation(2.5, 0)": "2.5",
        "withDeviation(null, null)": "",
    }
    for call, text in calls.items():
        shown = b.run(f"return import('/elements.js').then((all) => String(all.{call}))")
        assert shown == text, (call, shown, text)


def a_model_without_classes(page):
    b = page.fresh("homes")
    assert b.is_hidden("#verdict") and b.count("#bars li") == 0
    assert b.text("#log-likelihood") == "0.0", b.text("#log-likelihood")
    count = page.answers()
    b.type("#column-1", "50")
    page.settled(count)
    page.rested()
    assert b.text("#log-likelihood").startswith("−"), b.text("#log-likelihood")
    price = b.text("#table-answer td.filled")
    assert re.fullmatch(r"\d{5} ± \d{3,5}", price), price
    samples = b.texts("#table-answer tbody tr:first-child td:not(.filled)")
    assert len(samples) == 4 and all(re.fullmatch(r"\d{4,6}", text) for text in samples), samples
    b.click("#tab-look")
    b.wait_count("#samples tbody tr", 5)
    assert b.texts("#samples th") == ["price", "area", "garden"], b.texts("#samples th")
    b.click("#tab-fill")
    b.type("#file", page.service.path("homes.csv"))
    b.wait_count("#preview table", 1)
    assert b.texts("#preview th") == ["price", "area", "garden"], b.texts("#preview th")


def a_model_that_predicts_a_number(page):
    b = page.fresh("prices")
    count = page.answers()
    b.type("#column-1", "50")
    page.settled(count)
    mean, why = b.text("#verdict-class"), b.text("#verdict-p")
    found = re.fullmatch(r"price: from (\d+) to (\d+) with a probability of 90 %", why)
    low, high = map(int, found.groups())
    assert low < int(mean) < high, (mean, why)
    assert low < 900 * 50 < high, why
    assert b.count("#bars li") == 0


def many_columns_and_classes(page):
    b = page.fresh("gauges")
    assert (b.count("#fields input"), b.count("#fields select")) == (199, 1)
    assert b.count("#bars li") == 12, b.count("#bars li")
    assert b.text("#bars-rest").startswith("38 other classes: "), b.text("#bars-rest")
    assert b.count("#table-answer tbody tr") == 200
    b.type("#find", "_042")
    assert b.run("return document.querySelectorAll('.field:not([hidden])').length") == 1
    count = page.answers()
    b.type("#column-42", "12.5")
    page.settled(count)
    assert b.count("#table-answer tbody tr") == 199
    b.click("#tab-look")
    b.wait_count("#channels table", 1)
    b.wait_text("#samples-hint", "The first 24 of 50 classes")


def samples_and_channels_of_a_table(page):
    b = page.fresh()
    b.set_value("#model", "flowers", "change")
    b.click("#tab-look")
    b.wait_count("#samples tbody tr", 15)
    b.wait_count("#channels table", 1)
    heads = b.texts("#channels thead th")
    assert heads[0] == "column" and re.fullmatch(r"channel \d+\d\d?\.\d %", heads[1]), heads
    assert b.texts("#channels tbody th") == ["width", "length", "colour"]
    assert re.fullmatch(r"\w+ \d+ %", b.text("#channels tr:nth-child(3) td"))
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
    page.rested()
    themes, pictures = [], []
    for _ in range(3):
        b.click("#theme")
        themes.append((b.text("#theme"), b.run("return document.documentElement.dataset.theme")))
        pictures.append(b.pictures("#canvas, #mean, #deviation, #draws canvas, #examples canvas"))
        assert page.observed() == observed, "the image being edited stays"
    light, dark, again = pictures
    assert light == again and all(a != b for a, b in zip(light, dark, strict=True))
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
    for model in ("digits", "flowers", "gauges", "homes", "prices"):
        browser.click("#tab-erase")
        browser.set_value("#model", model, "change")
        if model == "digits":
            browser.wait_count("#examples button", 40)
            browser.stroke("#canvas", [(0.3, 0.25), (0.65, 0.35), (0.35, 0.5)])
            browser.set_value("#drop", 20)
        for view in ("erase", "look", "fill"):
            browser.click(f"#tab-{view}")
            if view == "fill" and model != "digits":
                browser.type("#file", page.service.path(f"{model}.csv"))
                browser.wait_count("#preview table", 1)
            fits(browser, page, f"{name}-{model}-{view}")


def fits(browser, page, name):
    time.sleep(0.8)
    excess = browser.run(
        "const { scrollWidth, clientWidth } = document.documentElement;"
        "return scrollWidth - clientWidth"
    )
    assert excess <= 0, f"{name}: {excess} pixels too wide"
    misfits = browser.run(MISFITS)
    assert not misfits, f"{name}: {misfits[:6]}"
    if page.folder:
        browser.screenshot(os.path.join(page.folder, f"{name}.png"))


TESTS = [
    the_page_opens_with_a_hole,
    erasing_everything_leaves_the_prior,
    a_stroke_is_restored_by_another,
    drawn_digits_are_recognised,
    squares_and_random_missing_pixels,
    time_from_stroke_to_bars,
    samples_wait_until_the_hand_rests,
    samples_of_an_old_row_are_abandoned,
    a_slow_mean_waits_until_the_hand_rests,
    no_answer_under_another_name,
    keyboard_alone,
    samples_and_channels,
    a_csv_file_is_filled,
    records_are_counted,
    a_form_for_tables,
    numbers_have_no_more_digits_than_were_written,
    numbers_are_rounded_for_people,
    a_model_without_classes,
    a_model_that_predicts_a_number,
    many_columns_and_classes,
    samples_and_channels_of_a_table,
    colours_are_chosen,
    light_and_dark_on_desk_and_phone,
]

if __name__ == "__main__":
    service = Service("--log", "none", models=("digits", "flowers", "gauges", "homes", "prices"))
    page = Page(service, sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        failed = run(TESTS, page)
    finally:
        page.browser.close()
        service.close()
    sys.exit(failed > 0)
