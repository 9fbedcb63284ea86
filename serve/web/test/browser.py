"""Headless Chromium through chromedriver's WebDriver protocol, with Python's own library only."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Space": " ",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
}
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


class Browser:
    def __init__(self, width=1280, height=900, dark=False, mobile=False):
        self.start_driver()
        options = {"args": [*ARGUMENTS, f"--window-size={width},{height}"]}
        if dark:
            options["args"].append("--force-dark-mode")
        if mobile:
            metrics = {"width": width, "height": height, "pixelRatio": 2}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})

    def start_driver(self):
        command = [shutil.which("chromedriver"), "--port=0"]
        self.driver = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                port = line.rsplit(" ", 1)[1].strip().rstrip(".")
                self.base = f"http://127.0.0.1:{port}"
                break

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"content-type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def post(self, path, body=None):
        return self.call("POST", self.session + path, body or {})

    def devtools(self, command, params):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.post("/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.post(f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self.post(f"/element/{self.find(selector)}/value", {"text": text})

    def focus(self, selector):
        self.run("document.querySelector(arguments[0]).focus()", selector)

    def set_value(self, selector, value, event="input"):
        self.run(
            "const [selector, value, event] = arguments;"
            "const field = document.querySelector(selector); field.value = value;"
            "field.dispatchEvent(new Event(event, { bubbles: true }))",
            *(selector, value, event),
        )

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )

    def count(self, selector):
        return len(self.texts(selector))

    def is_hidden(self, selector):
        return self.run("return document.querySelector(arguments[0]).hidden", selector)

    def pictures(self, selector):
        """The contents of canvases, as data URLs."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((c) => c.toDataURL())",
            selector,
        )

    def keys(self, *names):
        steps = []
        for name in names:
            value = KEYS.get(name, name)
            steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def stroke(self, selector, points, duration=30):
        """Presses, moves and releases the pointer; points are fractions of an element's size."""
        left, top, width, height = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            selector,
        )
        moves = [
            {
                "type": "pointerMove",
                "duration": 0 if i == 0 else duration,
                "x": round(left + x * width),
                "y": round(top + y * height),
                "origin": "viewport",
            }
            for i, (x, y) in enumerate(points)
        ]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        pen = {"type": "pointer", "id": "pen", "parameters": {"pointerType": "mouse"}}
        pen["actions"] = [moves[0], down, *moves[1:], up]
        self.post("/actions", {"actions": [pen]})

    def wait(self, what, script, *arguments, seconds=60):
        """Waits until a script returns something true, and returns it."""
        end = time.time() + seconds
        while time.time() < end:
            found = self.run(script, *arguments)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s for: {what}")

    def wait_text(self, selector, text):
        script = "return document.querySelector(arguments[0]).textContent.includes(arguments[1])"
        self.wait(f"{selector} with {text!r}", script, selector, text)

    def wait_change(self, selector, text):
        script = "return document.querySelector(arguments[0]).textContent !== arguments[1]"
        self.wait(f"{selector} other than {text!r}", script, selector, text)

    def wait_count(self, selector, count):
        script = "return document.querySelectorAll(arguments[0]).length === arguments[1]"
        self.wait(f"{count} of {selector}", script, selector, count)

    def screenshot(self, path):
        """The whole page, also what is below the window."""
        width, height = self.run(
            "const { scrollWidth, scrollHeight } = document.documentElement;"
            "return [scrollWidth, scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        params = {"clip": clip, "captureBeyondViewport": True}
        shot = self.devtools("Page.captureScreenshot", params)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self):
        """Errors and warnings of the console."""
        entries = self.call("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
