"""Debian's Chromium without a window, driven by its own driver."""

import os
import shutil
import time
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}
# What is where on the page, and which texts are cut off.
BOXES = """
const seen = node => node.getClientRects().length > 0
const box = node => { const { left, right, top, bottom } = node.getBoundingClientRect(); return { left, right, top, bottom } }
const named = node => [box(node), node.outerHTML.slice(0, 80)]
const cards = [...document.querySelectorAll(".card")].filter(seen)
return {
  width: innerWidth, scroll: document.documentElement.scrollWidth,
  background: getComputedStyle(document.body).backgroundColor,
  cards: cards.map(box), parts: cards.map(card => [...card.querySelectorAll("*")].filter(seen).map(named)),
  canvases: [...document.querySelectorAll(".chart canvas")].filter(seen).map(node => [box(node), box(node.closest(".card"))]),
  cut: [...document.querySelectorAll("h1, h2, h3, p, dt, dd, button, td, th, label, .key, .badge, .empty")]
    .filter(node => seen(node) && node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline")
    .map(node => node.outerHTML.slice(0, 80)),
}
"""
# The picture on the canvas of a chart.
PAINTED = """
const canvas = document.querySelector(`[data-chart=${arguments[0]}] canvas`)
return canvas ? canvas.toDataURL() : ""
"""


def missing():
    """What to install, in one sentence; nothing where all is there."""
    absent = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    return (
        f"chromium must be installed to test the dashboard; missing: {' and '.join(absent)}. "
        f"Run apt-get install {' '.join(absent)}."
        if absent
        else ""
    )


class Browser:
    """A page in a window of any size, light or dark."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url, width=1280, scheme="light"):
        self.resize(width)
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(url)

    def resize(self, width, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def enter(self, selector, text):
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def until(self, condition, seconds=120):
        """What a condition gives once it gives something."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            found = condition()
            if found:
                return found
        raise AssertionError(f"not within {seconds} s; the page says: {self.text('body')[:600]}")

    def picture(self, path):
        """The whole page, however long."""
        width = self.run("return innerWidth")
        self.resize(width, self.run("return document.documentElement.scrollHeight"))
        self.settle()
        assert self.driver.save_screenshot(str(path))
        self.resize(width)
        self.settle()

    def settle(self):
        """Charts follow their box one frame after it has changed."""
        self.run("const frame = () => new Promise(requestAnimationFrame); return frame().then(frame).then(frame)")

    def complaints(self):
        """Errors and warnings on the console since the last call."""
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]


@contextmanager
def browsing():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
