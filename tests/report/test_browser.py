"""The report in a real browser: it renders, is silent, asks for nothing, and fits a phone, the dark and the keyboard."""

import pytest
from chromium import BINARY, Browser
from streams import tokenizer

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(BINARY is None, reason="there is no Chromium on this machine")

# The contrast of every text against what lies behind it, by WCAG; gives those below the least.
CONTRAST = """(() => {
  const parse = c => { const m = c.match(/[0-9.]+/g).map(Number); return {rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1} };
  const light = ([r, g, b]) => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 };
    return .2126 * f(r) + .7152 * f(g) + .0722 * f(b) };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.a > 0.99) return c.rgb } return [255, 255, 255] };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (['title', 'STYLE'].includes(e.tagName)) continue;
    const s = getComputedStyle(e);
    const a = light(parse(e instanceof SVGElement ? s.fill : s.color).rgb), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push([e.tagName, e.className.baseVal ?? e.className, ratio.toFixed(2), e.textContent.slice(0, 20)]);
  }
  return low.slice(0, 5) })()"""

LOOKS = {"desktop": {}, "dark": {"dark": True}, "phone": {"width": 360, "height": 740, "phone": True}}


@pytest.fixture(scope="module")
def page(demo_build, tmp_path_factory):
    from databuild.report import report_page

    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(
        report_page(demo_build.out, tokenizer=tokenizer(), other=demo_build.out, seed=0, rows_shown=12, sources=[])
    )
    return path


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.mark.parametrize("look", LOOKS)
def test_it_renders_and_keeps_to_itself(browser, page, look, tmp_path):
    browser.open(page, **LOOKS[look])
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.run("document.querySelector('h1').textContent") == "dsv4-demo-fixed8192-seed42"
    boxes = browser.run("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width)")
    assert len(boxes) == 7 and min(boxes) > 250
    assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    assert browser.run(CONTRAST) == []
    browser.screenshot(tmp_path / "shot.png")
    assert (tmp_path / "shot.png").read_bytes()[:4] == b"\x89PNG"
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.complaints() == []


def test_light_and_dark_differ(browser, page):
    colours = []
    for dark in (False, True):
        browser.open(page, dark=dark)
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        bars = "getComputedStyle(document.querySelector('#c-src-patch_3 path')).fill"
        colours.append(browser.run(bars))
    assert len(set(colours)) == 4


def test_the_keyboard_goes_everywhere_in_order(browser, page):
    browser.open(page)
    assert browser.run("document.activeElement.tagName") == "BODY"
    seen = []
    for _ in range(400):
        browser.press("Tab")
        here = browser.run(
            "(e => [e.tagName, e.getAttribute('href') || e.textContent.slice(0, 12), e.getBoundingClientRect().top + scrollY,"
            "getComputedStyle(e).outlineStyle])(document.activeElement)"
        )
        if here[0] == "BODY" or (seen and here == seen[0]):
            break
        seen.append(here)
    assert seen[0][1] == "#main"
    assert [s[1] for s in seen[1:9]] == [
        "#built", "#compare", "#sources", "#rows", "#conversations", "#skipped", "#special", "#browser",
    ]  # fmt: skip
    assert sum(s[0] == "SUMMARY" for s in seen) == browser.run("document.querySelectorAll('summary').length")
    assert all(style != "none" for *_, style in seen), "what has the focus is seen to have it"
    browser.run("document.querySelector('details.row summary').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('details.row').open")
    assert browser.run("document.querySelector('details.row mark').getBoundingClientRect().height") > 0


def test_a_screen_reader_hears_charts_headings_and_what_is_trained(browser, page):
    browser.open(page)
    browser.run("document.querySelector('details.row').open = true")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    said = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    charts = [name for role, name in said if role in ("image", "img", "graphics-document")]
    assert len(charts) == 7 and all(len(name) > 15 for name in charts)
    assert {"banner", "main", "navigation"} <= {role for role, _ in said}
    assert [name for role, name in said if role == "heading"][:2] == ["dsv4-demo-fixed8192-seed42", "What was built"]
    assert any("[trained:" in name for _, name in said)
