"""A browser to drive: headless Chromium through chromedriver's WebDriver protocol, with nothing but Python."""

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


class Browser:
    def __init__(self, width=1280, height=900, dark=False, mobile=False):
        driver = shutil.which("chromedriver")
        self.driver = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{line.rsplit(' ', 1)[1].strip().rstrip('.')}"
                break
        args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--window-size={width},{height}",
        ]
        if dark:
            args.append("--force-dark-mode")
        options = {"args": args}
        if mobile:
            options["mobileEmulation"] = {
                "deviceMetrics": {"width": width, "height": height, "pixelRatio": 2}
            }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"
        scheme = {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        }
        self.post("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": scheme})

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

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def keys(self, *names):
        steps = []
        for name in names:
            value = KEYS.get(name, name)
            steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def stroke(self, selector, points, duration=30):
        """Presses, moves and releases over an element; points are fractions of its width and height."""
        box = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            selector,
        )
        at = [(round(box[0] + x * box[2]), round(box[1] + y * box[3])) for x, y in points]
        move = lambda p, d: {
            "type": "pointerMove",
            "duration": d,
            "x": p[0],
            "y": p[1],
            "origin": "viewport",
        }
        steps = [move(at[0], 0), {"type": "pointerDown", "button": 0}]
        steps += [move(p, duration) for p in at[1:]] + [{"type": "pointerUp", "button": 0}]
        self.post(
            "/actions",
            {
                "actions": [
                    {
                        "type": "pointer",
                        "id": "pen",
                        "parameters": {"pointerType": "mouse"},
                        "actions": steps,
                    }
                ]
            },
        )

    def wait(self, what, script, *arguments, seconds=15):
        """Waits until a script returns something true, and returns it."""
        end = time.time() + seconds
        while time.time() < end:
            found = self.run(script, *arguments)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s for: {what}")

    def screenshot(self, path, whole=True):
        if whole:
            size = self.run(
                "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
            )
            clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
            shot = self.post(
                "/goog/cdp/execute",
                {
                    "cmd": "Page.captureScreenshot",
                    "params": {"clip": clip, "captureBeyondViewport": True},
                },
            )
            data = shot["data"]
        else:
            data = self.call("GET", self.session + "/screenshot")
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the console says is wrong."""
        entries = self.call("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
