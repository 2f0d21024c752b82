"""Drives a headless Chromium over its debugging pipe: JSON, with a zero byte after each message."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time

PATIENCE = 60  # Seconds.


def program():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


class Browser:
    """Started on entry and killed on exit."""

    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        there, self.out = os.pipe()
        self.into, back = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{there} 4>&{back}', "sh", path, "--headless",
             "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--no-first-run", "--disable-sync", "--disable-component-update",
             "--disable-background-networking",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.numbers = itertools.count(1)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.profile.cleanup()

    def call(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def read(self):
        while b"\0" not in self.rest:
            came = os.read(self.into, 1 << 16)
            if not came:
                raise AssertionError("the browser has gone")
            self.rest += came
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url, width, height=900):
        return Page(self, url, width, height)


class Page:
    def __init__(self, browser, url, width, height):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def ask(self, expression):
        """Returns the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Until it is true."""
        until = time.monotonic() + PATIENCE
        while not self.ask(expression):
            if time.monotonic() > until:
                raise AssertionError(f"it never was: {expression}")
            time.sleep(0.05)
