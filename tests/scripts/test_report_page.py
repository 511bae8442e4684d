"""The page of `longhaul report` in a real browser: every control, and how fast it draws. Needs Debian's chromium
and chromium-driver, and selenium in .venv; scripts/nightly installs them."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    webdriver = None

ROOT = Path(__file__).resolve().parents[2]
LONGHAUL = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build/bin")) / "longhaul"
SCENARIO = ROOT / "benchmarks/scenarios/m70-2dc.toml"


def open_browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1400"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def make_page(directory, schedules, *more):
    trace, page = Path(directory) / "t.h5", Path(directory) / "report.html"
    for command in (["simulate", SCENARIO, "--schedule", schedules, "--out", trace, *more],
                    ["report", trace, "--out", page]):
        subprocess.run([LONGHAUL, *command], check=True, capture_output=True)
    return page


@unittest.skipUnless(webdriver and shutil.which("chromedriver"), "no chromium with selenium here")
class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.page = make_page(cls.directory.name, "1f1b,zb-h1")
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.browser.get(self.page.as_uri())

    def tearDown(self):
        severe = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(severe, [], "the page's program failed, or asked for another file")

    def element(self, name):
        return self.browser.find_element(By.ID, name)

    def asked(self, script):
        return self.browser.execute_script(f"return {script}")

    def span(self):
        return self.asked("view.to - view.from")

    def test_five_sentences_come_first(self):
        sentences = self.browser.find_elements(By.CSS_SELECTOR, "#answer p")
        self.assertEqual(len(sentences), 5)
        self.assertIn("zb-h1 is fastest", sentences[1].text)

    def test_buttons_and_wheel_zoom_and_keys_move(self):
        whole = self.span()
        self.element("zoom-in").click()
        self.assertAlmostEqual(self.span(), whole / 2)
        canvas, before = self.element("canvas"), self.asked("view.from")
        canvas.send_keys(Keys.ARROW_RIGHT)
        self.assertGreater(self.asked("view.from"), before)
        canvas.send_keys("-")
        self.assertGreater(self.span(), whole / 2)
        canvas.send_keys("0")
        self.assertEqual(self.span(), whole)
        self.element("zoom-in").click()
        self.element("zoom-all").click()
        self.assertEqual(self.span(), whole)
        self.browser.execute_script("""view.canvas.dispatchEvent(new WheelEvent("wheel",
            {deltaY: -100, cancelable: true, bubbles: true}))""")
        self.assertAlmostEqual(self.span(), whole * 0.8)

    def test_dragging_moves(self):
        self.element("zoom-in").click()
        before, canvas = self.asked("view.from"), self.element("canvas")
        ActionChains(self.browser).drag_and_drop_by_offset(canvas, -100, 0).perform()
        self.assertGreater(self.asked("view.from"), before)

    def test_hovering_tells_times_and_what_it_waited_for(self):
        place = self.asked("""(() => { const side = view.timeline.sides[0], lane = view.panels[0].lanes[1];
            const row = side.byLane[lane.index][0];
            return [view.x(side.start[row] + side.length[row] / 2), lane.y + 5, labelOf(view.timeline, row)]; })()""")
        canvas = self.element("canvas")
        corner = canvas.rect
        ActionChains(self.browser).move_to_element_with_offset(
            canvas, round(place[0] - corner["width"] / 2), round(place[1] - corner["height"] / 2)).perform()
        text = self.element("tip").text
        self.assertIn(place[2], text)
        self.assertIn("predicted:", text)
        self.assertIn("it waited for", text)

    def test_keys_go_from_op_to_op_and_lane_to_lane(self):
        canvas = self.element("canvas")
        canvas.send_keys("n")
        first = self.element("tip").text
        canvas.send_keys("n")
        second = self.element("tip").text
        self.assertNotEqual(first, second)
        canvas.send_keys("p")
        self.assertEqual(self.element("tip").text, first)
        canvas.send_keys(Keys.ARROW_DOWN)
        self.assertNotEqual(self.element("tip").text, first)
        canvas.send_keys(Keys.ESCAPE)
        self.assertEqual(self.element("tip").text, "")

    def test_finds_what_is_typed(self):
        self.browser.find_element(By.TAG_NAME, "body").send_keys("/")
        find = self.browser.switch_to.active_element
        self.assertEqual(find.get_attribute("id"), "find")
        find.send_keys("f3")
        self.assertEqual(self.element("found").text, "8 found")
        find.send_keys(Keys.ENTER)
        self.assertEqual(self.element("found").text, "1 of 8")
        self.assertIn("F3", self.element("tip").text)
        for text, expected in (("rank 2", "rank 2"), ("op 17", "op 17"), ("no such", "")):
            find.clear()
            find.send_keys(text, Keys.ENTER)
            if expected:
                self.assertIn(expected, self.element("tip").text)
            else:
                self.assertEqual(self.element("found").text, "0 found")

    def test_schedule_lanes_path_and_theme_change_the_picture(self):
        pictures = [self.asked("view.canvas.toDataURL()")]

        def changed(what):
            self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
            pictures.append(self.asked("view.canvas.toDataURL()"))
            self.assertNotEqual(pictures[-1], pictures[-2], what)

        Select(self.element("lanes")).select_by_value("all")
        changed("lanes")
        self.element("path").click()
        changed("path")
        self.element("theme").click()
        changed("theme")
        Select(self.element("which")).select_by_index(1)
        changed("schedule")

    def test_curves_take_the_colours_of_the_theme(self):
        for _ in range(2):
            drawn, wanted = self.asked("""(() => { element("theme").click(); return [view.colour("--ink"),
                getComputedStyle(document.documentElement).getPropertyValue("--ink").trim()]; })()""")
            self.assertEqual(drawn, wanted, "before the next frame")

    def test_prints_light_whatever_the_theme(self):
        now = "[document.documentElement.dataset.theme, view.canvas.toDataURL()]"

        def picture():
            return self.browser.execute_async_script(
                f"requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]({now})))")

        def after(event):
            return self.browser.execute_script(f"dispatchEvent(new Event(arguments[0])); return {now}", event)

        light = picture()
        self.assertEqual(light[0], "light")
        self.element("theme").click()
        dark = picture()
        self.assertEqual(dark[0], "dark")
        self.assertNotEqual(dark[1], light[1])
        self.assertEqual(after("beforeprint"), light)
        after("afterprint")
        self.assertEqual(picture(), dark)

    def test_tables_sort(self):
        def column(index):
            return [row.find_elements(By.TAG_NAME, "td")[index].text
                    for row in self.browser.find_elements(By.CSS_SELECTOR, "#table tbody tr")]
        self.assertEqual(column(1), ["zb-h1", "1f1b"])
        for expected in (["1f1b", "zb-h1"], ["zb-h1", "1f1b"]):
            self.browser.find_elements(By.CSS_SELECTOR, "#table th button")[1].click()
            self.assertEqual(column(1), expected)

    def test_everything_is_reached_by_tab(self):
        reached = set()
        for _ in range(40):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(self.browser.switch_to.active_element.get_attribute("id"))
        self.assertLessEqual({"theme", "which", "lanes", "path", "zoom-in", "zoom-out", "zoom-all", "find", "canvas"},
                             reached)

    def test_a_page_of_many_ops_is_small_and_draws_only_what_is_seen(self):
        with tempfile.TemporaryDirectory() as directory:
            page = make_page(directory, "1f1b", "--set", "parallel.microbatches=2000")
            self.assertLess(page.stat().st_size, 5_000_000)
            self.browser.get(page.as_uri())
            self.assertGreater(self.asked("view.timeline.count"), 80_000)
            rectangles = self.asked("""(() => { let count = 0; const pen = CanvasRenderingContext2D.prototype;
                const plain = pen.fillRect; pen.fillRect = function(...place) { ++count; plain.apply(this, place); };
                view.draw(); pen.fillRect = plain; return count; })()""")
            self.assertLess(rectangles, 30_000)


@unittest.skipUnless(webdriver and shutil.which("chromedriver"), "no chromium with selenium here")
class AdvicePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        advice, page = Path(cls.directory.name) / "advice", Path(cls.directory.name) / "report.html"
        for command in (["advise", SCENARIO, "--search-moves", "200", "--out", advice],
                        ["report", advice, "--out", page]):
            subprocess.run([LONGHAUL, *command], check=True, capture_output=True)
        cls.advice = json.loads((advice / "advice.json").read_text())
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.get(page.as_uri())

    def texts(self, selector):
        return [each.text for each in self.browser.find_elements(By.CSS_SELECTOR, selector)]

    def test_shows_sentences_bars_plans_and_what_is_not_used(self):
        sentences = self.texts("#answer p")
        self.assertEqual(len(sentences), 5)
        self.assertIn("Plan 1 is best", sentences[1])
        ideas = [each["idea"] for each in self.advice["waterfall"]]
        names = self.texts("#waterfall text[text-anchor=end]")
        self.assertEqual(names[:len(ideas) + 2], ["without any idea", *ideas, "the best plan"])
        bars = self.browser.find_elements(By.CSS_SELECTOR, "#waterfall rect")
        first, last = bars[0].rect["width"], bars[len(ideas) + 1].rect["width"]
        self.assertAlmostEqual(last / first, self.advice["plans"][0]["iteration_ns"] / self.advice["baseline_ns"],
                               places=2)
        self.assertEqual(len(self.texts("#not-used li")), len(self.advice["not_used"]))
        self.assertEqual(len(self.texts("#table tbody tr")), len(self.advice["plans"]))
        self.assertEqual(self.texts("#table-title"), ["Plans"])
        self.assertEqual(self.browser.execute_script("return view.timeline.title"), "the best plan")
        severe = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(severe, [])

    def test_plans_sort(self):
        plans = [str(i + 1) for i in range(len(self.advice["plans"]))]
        self.assertGreater(len(plans), 1)
        titles = [title.split(" ")[0] for title in self.texts("#table th button")]
        self.assertLessEqual({"plan", "GPUs", "iteration", "gap"}, set(titles))
        for expected in (plans, plans[::-1]):  # the best first
            self.browser.find_elements(By.CSS_SELECTOR, "#table th button")[titles.index("iteration")].click()
            self.assertEqual([row.split()[0] for row in self.texts("#table tbody tr")], expected)


def training_record():
    """Two methods of two seeds; one run diverges, the others reach the target."""
    def curve(method, seed, slower):
        points = [[10 * i, slower * 10**9 * i, 3.0, 3 - i / 10] for i in range(1, 11)]
        if (method, seed) == ("topk", 2):
            points[-1][3] = None
        reached = slower != 3
        return {"method": method, "seed": seed, "learning_rate": 0.01, "kind": "measured", "points": points,
                "iterations_to_target": 90 if reached else None,
                "time_to_target_ns": slower * 9 * 10**9 if reached else None, "exchanges": 100,
                "period_ns": 11_000_000, "predicted_period_ns": 10_000_000, "fresh_share": None,
                "wan": {"payload_bytes": 102_400}}
    return {"benchmark": "bench_train", "git_commit": "abc", "command_line": "bench_train two.toml",
            "scenario": "two", "scenario_text": "[parallel]", "ranks": 2, "compute": "real",
            "network": "emulated", "environment": {},
            "train": {"data": {"name": "synthetic"}, "target": {"kind": "loss", "value": 2.1},
                      "curves": [curve("none", 1, 2), curve("none", 2, 2), curve("topk", 1, 1),
                                 curve("topk", 2, 1), curve("fp16", 1, 3)]}}


@unittest.skipUnless(webdriver and shutil.which("chromedriver"), "no chromium with selenium here")
class TrainingPage(unittest.TestCase):
    """Of a run of bench_train, which has no timeline."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        run, page = Path(cls.directory.name) / "run", Path(cls.directory.name) / "report.html"
        run.mkdir()
        (run / "record.json").write_text(json.dumps(training_record()))
        subprocess.run([LONGHAUL, "report", run, "--out", page], check=True, capture_output=True)
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.get(page.as_uri())

    def tearDown(self):
        severe = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(severe, [])

    def texts(self, selector):
        return [each.text for each in self.browser.find_elements(By.CSS_SELECTOR, selector)]

    def test_shows_sentences_curves_and_their_table(self):
        sentences = self.texts("#answer p")
        self.assertEqual(len(sentences), 5)
        self.assertIn("topk gets to loss 2.1 first: 9 s", sentences[1])
        lines = self.browser.find_elements(By.CSS_SELECTOR, "#curves polyline")
        self.assertEqual([len(line.get_attribute("points").split()) for line in lines], [10, 10, 10, 9, 10])
        looks = {(line.get_attribute("stroke"), line.get_attribute("stroke-dasharray")) for line in lines}
        self.assertEqual(len(looks), 3, "a look for each method")
        self.assertEqual(len({dash for _, dash in looks}), 3, "in grey too")
        self.assertEqual(self.texts("#curves-legend li"), ["none", "topk", "fp16"])
        self.assertEqual(self.texts("#table-title"), ["Curves"])
        rows = [row.split()[:2] for row in self.texts("#table tbody tr")]
        self.assertEqual(rows, [["topk", "1"], ["topk", "2"], ["none", "1"], ["none", "2"], ["fp16", "1"]])
        for hidden in ("chart", "use-part", "advice"):
            self.assertFalse(self.browser.find_element(By.ID, hidden).is_displayed(), hidden)

    def test_curves_are_over_time_or_updates(self):
        def ends():
            lines = self.browser.find_elements(By.CSS_SELECTOR, "#curves polyline")
            return [float(line.get_attribute("points").split()[-1].split(",")[0]) for line in lines]
        over = Select(self.browser.find_element(By.ID, "over"))
        over.select_by_value("updates")
        self.assertEqual(len({end for i, end in enumerate(ends()) if i != 3}), 1)
        self.assertIn("100", self.texts("#curves text"))
        over.select_by_value("time")
        self.assertLess(ends()[2], ends()[0])
        self.assertLess(ends()[0], ends()[4])


if __name__ == "__main__":
    unittest.main()
