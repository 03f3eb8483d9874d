"""Pages in a browser: lines that link, filters, keys, addresses, both colours, two widths, and no complaints.

One headless Chromium serves all tests here; where there is none, or no driver for it, they are skipped.
"""

from __future__ import annotations

import importlib
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, Golden
from pages import ROOT

import tilewright.language as pl
from tilewright import errors, ir
from tilewright.ops.registry import specs
from tilewright.tools import cli
from tilewright.tools.reference import noun_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

ARGUMENTS = "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.parallel(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, cols])
            e = pl.exp(t - pl.max(t, axis=-1, keepdims=True))
            pl.store(e / pl.sum(e, axis=-1, keepdims=True), [r, 0], out)
    return out


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


EXP = line_of("e = pl.exp(")


READY = """
const done = arguments[0], look = () => 'ready' in document.body.dataset ? done() : setTimeout(look, 5);
look();
"""
SHRUNK = """
const [address, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(12, 8), context = canvas.getContext('2d', {willReadFrequently: true});
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, 12, 8);
  const data = context.getImageData(0, 0, 12, 8).data, gray = (n) => (data[n] + data[n + 1] + data[n + 2]) / 3;
  done([...Array(8).keys()].map((y) => [...Array(12).keys()].map((x) => Math.round(gray(4 * (12 * y + x))))));
};
image.src = address;
"""


class Browser:
    """A browser with one page open."""

    def __init__(self) -> None:
        selenium: Any = pytest.importorskip("selenium.webdriver", reason="no selenium drives a browser here")
        options = selenium.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = selenium.Chrome(options=options, service=selenium.ChromeService(DRIVER))
        self.driver.set_script_timeout(5)

    def open(self, page: Path, where: str = "", width: int = 1400) -> None:
        """Open a page at an address, and wait until it is drawn."""
        self.driver.set_window_size(width, 900)
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}#{where}")
        self.driver.execute_async_script(READY)

    def run(self, script: str) -> Any:
        """Return what a script gives, once what it changed has been drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        return self.driver.execute_script(script)

    def lines(self, selector: str) -> list[str]:
        """Return the texts of the elements that a selector finds."""
        return self.run(f"return [...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def press(self, key: str) -> None:
        """Press a key on the page."""
        event = f"new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}})"
        self.run(f"document.body.dispatchEvent({event})")

    def thumbnail(self) -> list[list[int]]:
        """Return how bright what is seen is, in eight rows of twelve fields."""
        shot = self.driver.get_screenshot_as_base64()
        return self.driver.execute_async_script(SHRUNK, f"data:image/png;base64,{shot}")

    def search(self, text: str) -> None:
        """Filter the lines of the open tab by a text."""
        change = f"box.value = {json.dumps(text)}; box.dispatchEvent(new Event('input'))"
        self.run(f"const box = document.querySelector('#content input[type=search]'); {change}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not (CHROMIUM and DRIVER):
        pytest.skip("there is no Chromium with its driver here")
    made = Browser()
    yield made
    made.driver.quit()


@pytest.fixture(autouse=True)
def no_complaints(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "browser" not in request.fixturenames:
        return
    browser: Browser = request.getfixturevalue("browser")
    assert [entry for entry in browser.driver.get_log("browser") if entry["source"] != "rendering"] == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = np.ones((40, 24), np.float32)
    return softmax.compile(x).explore(x, output=tmp_path_factory.mktemp("browser") / "softmax.html")


def test_lines_of_every_stage_light_up_with_the_line_they_came_from(browser: Browser, page: Path) -> None:
    browser.open(page, "tab=passes&stage=OutlineScopes")
    browser.run(f"document.querySelector('#source [data-place=\"{EXP}\"]').click()")
    assert "e = pl.exp(t - pl.max(" in browser.lines("#source .ln.pin code")[0]
    assert [line.strip() for line in browser.lines("#content .ln.add.pin code")][-1] == "e = pl.tile.exp(sub)"
    for code, wanted in (0, "llvm.fma"), (1, ""):
        browser.run(f"explorer.state.code = {code}; explorer.open('code')")
        assert browser.lines("#content .ln.pin code")
        lit = browser.run("return explorer.opened[0].rows.filter((r) => r.place === explorer.links.pinned)")
        assert any(wanted in row["text"] for row in lit)


def test_pointing_at_code_lights_up_its_source(browser: Browser, page: Path) -> None:
    browser.open(page, "tab=code&code=llvm")
    browser.run(f"explorer.opened[0].reveal({EXP})")
    event = "new MouseEvent('mouseover', {bubbles: true})"
    browser.run(f"document.querySelector('#content [data-place=\"{EXP}\"]').dispatchEvent({event})")
    (lit,) = browser.lines("#source .ln.hot code")
    assert lit.strip() == "e = pl.exp(t - pl.max(t, axis=-1, keepdims=True))"


def test_filters_show_the_lines_that_were_asked_for(browser: Browser, page: Path) -> None:
    browser.open(page, f"tab=code&code=llvm&line={EXP}")
    browser.search("FMA")
    shown = browser.lines("#content .ln code")
    assert shown and all("fma" in line for line in shown)
    browser.search("")
    browser.run("document.getElementById('only').click()")
    assert browser.run("return explorer.opened[0].rows.every((row) => row.place === explorer.links.pinned)")


def test_keys_and_addresses_lead_to_the_same_places(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("2")
    browser.press("]")
    browser.press("j")
    place = browser.run("return location.hash")
    assert place == f"#tab=code&code=assembly&line={line_of('def softmax(')}"
    browser.open(page, place[1:])
    assert browser.lines("#content .group button[aria-pressed=true]") == ["assembly"]
    browser.press("?")
    assert browser.run("return document.getElementById('keys').open")


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_looks_as_it_did(browser: Browser, page: Path, golden: Golden, width: int, theme: str) -> None:
    browser.open(page, f"tab=passes&line={EXP}", width)
    browser.run(f"document.documentElement.dataset.theme = '{theme}'")
    name, seen = f"explore/{theme}_{width}.json", browser.thumbnail()
    if golden.update:
        golden(name, json.dumps(seen).replace("], ", "],\n ") + "\n")
    wanted = json.loads((GOLDEN / name).read_text(encoding="utf-8"))
    assert np.abs(np.array(seen) - np.array(wanted)).max() < 48  # other fonts are a little lighter


def test_an_address_shows_its_tab_on_a_phone_and_as_much_of_it_as_fits(browser: Browser, page: Path) -> None:
    browser.open(page, "tab=facts", 420)
    box = browser.run("return document.getElementById('tab-facts').getBoundingClientRect()")
    assert 0 <= box["left"] and box["right"] <= browser.run("return innerWidth")
    assert browser.run("return getComputedStyle(document.getElementById('source')).display") == "none"


def test_every_tab_draws_something_and_fits(browser: Browser, page: Path) -> None:
    for width in 1400, 420:
        browser.open(page, "tab=passes", width)
        for tab in browser.run("return explorer.tabs.map((tab) => tab.id)"):
            browser.run(f"explorer.open('{tab}')")
            assert browser.run("return document.getElementById('content').textContent.length") > 40, tab
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (tab, width)


def test_the_access_picture_plays_turn_by_turn(browser: Browser, page: Path) -> None:
    browser.open(page, "tab=access")
    assert browser.lines("#turn") == ["all 3 turns"]
    painted = "return [...document.querySelector('canvas').getContext('2d').getImageData(2, {}, 1, 1).data].join()"
    whole = browser.run(painted.format(2))
    browser.run("explorer.opened[0].go(1)")
    assert browser.lines("#turn") == ["2/3  r = 16"]
    rows = browser.run("const c = document.querySelector('canvas'); return c.height / 40")
    assert browser.run(painted.format(2)) != whole == browser.run(painted.format(16 * rows + 2))


@pl.jit
def smooth(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(x.shape[0] - 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [1, 16]) + pl.load(x, [r + 1, 0], [1, 16])
            pl.store(t * 0.5, [r, 0], x)
    return x


def test_elements_that_turns_race_for_are_red_in_the_picture_and_so_is_the_line(
    browser: Browser, tmp_path: Path
) -> None:
    x = np.ones((4, 16), np.float32)
    browser.open(smooth.compile(x).explore(x, output=tmp_path / "smooth.html"), "tab=access")
    red = browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--del-ink').trim()")
    painted = """
      const c = document.querySelector('canvas'), d = c.getContext('2d'), cell = c.height / 4;
      return [0, 1, 2, 3].map((row) => {
        const p = d.getImageData(2, row * cell + 2, 1, 1).data;
        return '#' + [p[0], p[1], p[2]].map((n) => n.toString(16).padStart(2, '0')).join('');
      });
    """
    assert [color == red for color in browser.run(painted)] == [False, True, True, False]
    assert browser.lines("#source .ln.bad code") == ["            pl.store(t * 0.5, [r, 0], x)"]


def test_a_notebook_shows_a_program_in_a_frame_of_its_own(browser: Browser, tmp_path: Path) -> None:
    shown: str = getattr(softmax.compile(np.ones((40, 24), np.float32)), "_repr_html_")()  # noqa: B009
    (tmp_path / "cell.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8")
    browser.driver.get((tmp_path / "cell.html").as_uri())
    browser.driver.switch_to.frame(0)
    browser.driver.execute_async_script(READY)
    assert browser.lines("#title") == ["softmax"]
    browser.run(f"explorer.links.pin({EXP})")
    assert len(browser.lines("#content .ln.add.pin")) == 3
    browser.driver.switch_to.default_content()


WRONG = """import tilewright.language as pl
@pl.jit
def wrong(x: pl.Tensor[[8, 8], pl.FP32]):
    t = pl.load(x, [0, 0], [8, 8])
"""


def test_a_refused_kernel_says_which_stage_refused_it(browser: Browser, tmp_path: Path) -> None:
    kernel = tmp_path / "wrong.py"
    kernel.write_text(WRONG, encoding="utf-8")
    assert cli.main(["explore", str(kernel), "-o", str(tmp_path / "wrong.html")]) == 1
    browser.open(tmp_path / "wrong.html")
    assert browser.lines(".refusal h2") == ["Refused by CheckControlPlane"]
    assert browser.lines("#source .ln.bad code") == ["    t = pl.load(x, [0, 0], [8, 8])"]


FAR = """
import tilewright.language as pl

@pl.jit
def far(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [8, 8])
        b = pl.exp(a)
        c = pl.abs(b)
        d = pl.neg(c)
        e = pl.reshape(d, [7, 7])
        pl.store(e, [0, 0], out)
    return out
"""


def test_a_kernel_that_the_front_end_refuses_is_shown_from_its_first_line(browser: Browser, tmp_path: Path) -> None:
    kernel = tmp_path / "far.py"
    kernel.write_text(FAR, encoding="utf-8")
    assert cli.main(["explore", str(kernel), "-o", str(tmp_path / "far.html")]) == 1
    browser.open(tmp_path / "far.html")
    assert browser.lines(".refusal h2") == ["Refused by the front end"]
    assert browser.lines("#source .ln code")[3] == "@pl.jit"


def test_a_thousand_ops_take_less_than_three_megabytes_and_a_second(browser: Browser, tmp_path: Path) -> None:
    ops = "\n".join(f"        t{n + 1} = pl.{'abs' if n % 2 else 'neg'}(t{n})" for n in range(1000))
    text = f"""import tilewright.language as pl
@pl.program
class many:
    @pl.function(type=pl.FunctionType.InCore)
    def many(self, x: pl.Tensor[[8, 64], pl.FP32], out: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        t0 = pl.load(x, [0, 0], [8, 64])
{ops}
        return pl.store(t1000, [0, 0], out)
"""
    page = ir.compile(pl.parse(text)).explore(output=tmp_path / "many.html")
    assert page.stat().st_size < 3e6
    browser.open(page, "tab=code")
    assert browser.run("return performance.timing.domComplete - performance.timing.navigationStart") < 1000
    assert browser.run("return explorer.opened[0].rows.length") > 1000


# the site

UNTOUCHED = {"array", "pipes", "prefetch", "sync", "system"}
"""The nouns of ops without an element to draw: numbers of a core, buffers, hints, waits, and what runs where."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, ROOT / "docs/site/build.py", "--output", output], check=True, stdout=subprocess.DEVNULL
    )
    return output


def test_links_of_the_site_lead_to_pages_and_to_places_on_them(site: Path) -> None:
    texts = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {page: {"", *re.findall(r' id="([^"]*)"', text)} for page, text in texts.items()}
    places |= {path.relative_to(site).as_posix(): {""} for path in site.rglob("*") if path.suffix != ".html"}
    wanted = {
        (page, target) for page, text in texts.items() for target in re.findall(r'<[^>]*(?:href|src)="([^":]*)"', text)
    }
    lost: list[tuple[str, str]] = []
    for page, target in wanted:
        file, _, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
        if anchor not in places.get(there, ()):
            lost.append((page, target))
    assert not lost


def test_every_class_of_error_and_every_op_has_its_place_in_the_site(site: Path) -> None:
    index = json.loads((site / "search.js").read_text(encoding="utf-8").partition("=")[2].rstrip(";\n"))
    found = {(group, title) for title, _, group, _ in index}
    assert {("Ops", f"pl.{spec.name}") for spec in specs() if spec.has_a_name} <= found
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type)]
    wanted = {("Errors", name) for name in kinds if issubclass(getattr(errors, name), errors.TilewrightError)}
    assert wanted <= found
    assert (site / "ops/gather.html").read_text(encoding="utf-8").count("<svg") >= 1
    texts = [path.read_text(encoding="utf-8") for path in (site / "ops").glob("*.html")]
    sections = [section for text in texts for section in re.split(r'(?=<h2 id=")', text)[1:]]
    assert not [section[:60] for section in sections if "<h3>Example" not in section]
    assert not [section[:60] for section in sections if ("<svg" in section) == ('class="untouched"' in section)]
    undrawn = {path.stem for path in (site / "ops").glob("*.html") if 'class="untouched"' in path.read_text("utf-8")}
    assert undrawn <= UNTOUCHED, undrawn - UNTOUCHED


def test_every_class_of_error_shows_a_kernel_or_says_why_not(site: Path) -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (site / "errors").glob("*.html")}
    assert {"PtoOperandError", "CacheWarning"} <= texts.keys()
    bare = {name for name, text in texts.items() if '<p class="fix"><b>Fix:' not in text}
    assert bare == {"index", "InternalError", "PartialCodegenError"}
    assert all('class="common"' in texts[name] for name in (bare - {"index"}) | {"KernelError", "ParserTypeError"})


def test_ranks_run_the_examples_of_their_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs/site"), *sys.path])
    examples: Any = importlib.import_module("rank_examples")
    texts = {examples.ranked_kernel(spec, noun_of(spec)) for spec in specs() if spec.has_a_name} - {""}
    found = [examples.touched_by_ranks(text) for text in texts]
    assert len(found) > 10 and all([turn.name for turn in access.turns] for access in found)
    assert not [each.text for access in found for each in access.findings if each.kind in ("race", "failed")]


def test_the_site_is_searched_and_fits_a_phone(browser: Browser, site: Path) -> None:
    for width in 1400, 420:
        browser.driver.set_window_size(width, 900)
        for name in "index", "ops/gather", "errors/ShapeMismatchError", "coming-from", "gallery":
            browser.driver.get((site / f"{name}.html").as_uri())
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (name, width)
    browser.driver.get((site / "coming-from.html").as_uri())
    names = "[...document.querySelectorAll('td code')].filter((e) => !e.textContent.includes(' '))"
    assert browser.run(f"return {names}.every((e) => e.getClientRects().length === 1)"), "names stay whole"
    browser.driver.get((site / "index.html").as_uri())
    ends = """
      const box = document.querySelector('.code'), text = document.createRange();
      text.selectNodeContents(box.querySelector('code'));
      return [box.querySelector('.copy').getBoundingClientRect().bottom, text.getBoundingClientRect().top];
    """
    button, text = browser.run(ends)
    assert button <= text, "the button that copies lies above the code, where it is always seen"
    change = "box.value = 'largest row'; box.dispatchEvent(new Event('input'))"
    browser.run(f"const box = document.getElementById('search'); {change}")
    assert "pl.row_max" in [text[3:].partition("Return")[0] for text in browser.lines("#results a")]
