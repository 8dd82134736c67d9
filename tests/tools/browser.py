"""A headless Chromium, driven by chromedriver over the protocol WebDriver."""
from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    "--hide-scrollbars",
)


def is_there() -> bool:
    return shutil.which("chromedriver") is not None


@dataclass(frozen=True)
class Browser:
    """One window."""

    session: str

    def open(self, address: str) -> None:
        _call(f"{self.session}/url", {"url": address})

    def run(self, script: str) -> Any:
        """What a script returns, such as `return document.title`."""
        return _call(f"{self.session}/execute/sync", {"script": script, "args": []})

    def wait_for(self, script: str, seconds: float = 20) -> Any:
        """What a script returns as soon as that is not empty; raises TimeoutError."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.1)
        return found

    def messages(self) -> list[str]:
        """What the page complained about since this was last asked."""
        return [each["message"] for each in _call(f"{self.session}/se/log", {"type": "browser"})]


@contextmanager
def browser(folder: Path, width: int, height: int = 900, *, dark: bool = False) -> Iterator[Browser]:
    """A browser with that window; its profile is kept in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        root = f"http://127.0.0.1:{port}/session"
        arguments = [*ARGUMENTS, f"--window-size={width},{height}", f"--user-data-dir={folder}"]
        arguments += ["--blink-settings=preferredColorScheme=0"] if dark else []
        options = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        _wait_until_open(port)
        session = _call(root, {"capabilities": {"alwaysMatch": options}})["sessionId"]
        yield Browser(f"{root}/{session}")
        _call(f"{root}/{session}", method="DELETE")
    finally:
        driver.terminate()
        driver.wait(10)


def _wait_until_open(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _call(address: str, data: Any = None, method: str = "POST") -> Any:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]
