"""A browser without a screen, for tests of pages: Debian's chromium, chromium-driver and python3-selenium. `why_not()`
says why there is none here, or returns None. All of them end with this process."""
import atexit
import os
import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
state = {"driver": None, "why": None}


def start():
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = CHROMIUM
    # Chromium's own sandbox refuses root and is not to be had in most containers; it opens our page alone.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-proxy-server", "--disable-background-networking", "--disable-component-update"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    state["driver"] = webdriver.Chrome(service=Service(DRIVER), options=options)
    state["driver"].set_script_timeout(30)
    state["driver"].set_page_load_timeout(60)
    atexit.register(state["driver"].quit)


def why_not():
    """None: there is one."""
    if state["driver"] or state["why"]:
        return state["why"]
    if not CHROMIUM or not DRIVER:
        state["why"] = "no chromium or no chromedriver here"
        return state["why"]
    try:
        start()
    except ImportError:
        state["why"] = "no selenium for python here"
    except Exception as error:  # what the browser needs and this machine lacks has many names
        state["why"] = "the browser does not start: " + (str(error).strip().splitlines() or [repr(error)])[0]
    return state["why"]


class Page:
    """One page, alone in the browser: `with Page(url) as page: page.text("#state")`."""

    def __init__(self, url, width=1280, height=900, scheme="light"):
        self.driver = state["driver"]
        self.driver.get_log("browser")
        self.resize(width, height)
        self.prefer(scheme)
        self.driver.get(url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Leaves nothing for the next page: not what is stored, and no connection."""
        self.js("sessionStorage.clear(); localStorage.clear()")
        self.driver.get("about:blank")

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def go(self, url):
        self.driver.get(url)

    def tab(self):
        return self.driver.current_window_handle

    def open_tab(self, url):
        """Another tab, which is the one in front now."""
        self.driver.switch_to.new_window("tab")
        self.driver.get(url)
        return self.tab()

    def go_to_tab(self, tab):
        self.driver.switch_to.window(tab)
        self.driver.execute_cdp_cmd("Page.bringToFront", {})

    def close_tab(self, tab):
        self.driver.switch_to.window(tab)
        self.driver.close()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def text(self, selector):
        """What the first such element says; None: there is none, or it is not shown."""
        return self.js("const e = document.querySelector(arguments[0]);"
                       "return e && e.getClientRects().length ? e.textContent : null", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def press(self, *keys):
        """Keys by the names of selenium's Keys, or as text."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys
        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(getattr(Keys, key, key))
        chain.perform()

    def faults(self):
        """What the console says since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def shoot(self, name):
        """A picture into the folder SHOTS, if it is given."""
        folder = os.environ.get("SHOTS")
        if folder:
            width, height = self.js("return [innerWidth, innerHeight]")
            self.resize(width, self.js("return document.documentElement.scrollHeight"))
            self.js("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            self.driver.save_screenshot(os.path.join(folder, name + ".png"))
            self.resize(width, height)
