"""Chromium without a window, and what it writes on its console."""

import contextlib
import shutil

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--allow-file-access-from-files --window-size=1280,1600"
)


@contextlib.contextmanager
def chromium(folder):
    """A driver of a browser whose profile is in `folder`; skips the test where there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("chromium and chromium-driver are not installed")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    try:
        opened = webdriver.Chrome(options=options, service=service)
        yield opened
        opened.quit()
    finally:
        service.stop()


def complaints(opened):
    """What the console says in earnest since it was last asked."""
    return [e["message"] for e in opened.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
