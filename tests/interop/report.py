"""Opens pages of `serrate report` in a headless Chromium and checks their layout, which Rust tests cannot see.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/report.txt
    cargo build
    venv/bin/python tests/interop/report.py target/debug/serrate [DATA ..] [--shots FOLDER]

Without DATA, it writes pages of the test data, of generated patients, and of data with long names, times and numbers.
`large_meds.py` writes a folder of a million subjects that can be DATA. CHROMIUM is the path of the browser (by default
/usr/bin/chromium). `--shots` keeps a screenshot of each page, width and theme, in colour and in grey.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).parent.parent.parent
WIDTHS = (400, 1280)
THEMES = ("light", "dark")

# Finds elements that reach beyond the window, except elements in a box that scrolls.
WIDE = """() => {
  const limit = document.documentElement.clientWidth + 1;
  return [...document.querySelectorAll("body *")]
    .filter((e) => !e.closest(".scroll") && !e.closest(".skip") && e.getBoundingClientRect().right > limit
      && getComputedStyle(e).visibility !== "hidden")
    .map((e) => e.tagName + "." + (e.getAttribute("class") || "") + ": " + (e.textContent || "").slice(0, 40));
}"""

# Finds labels that cover each other within a chart.
COVERED = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const boxes = [...chart.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
      const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
      const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
      if (across > 1 && down > 4) found.push(a + " | " + b);
    }));
  }
  return found;
}"""

# Finds labels in a histogram that a line crosses, unless the label has a background and is in front of the line.
CROSSED = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.bars")) {
    const parts = [...chart.querySelectorAll("line.mark, text.halo")];
    parts.forEach((text, i) => {
      if (text.tagName !== "text") return;
      const box = text.getBoundingClientRect();
      const isOpaque = parseFloat(getComputedStyle(text).strokeWidth) >= 6;
      parts.forEach((line, k) => {
        if (line.tagName === "text" || (isOpaque && k < i)) return;
        const at = line.getBoundingClientRect();
        const isInside = at.left > box.left + 1 && at.left < box.right - 1;
        if (isInside && at.top < box.bottom - 4) found.push(text.textContent);
      });
    });
  }
  return found;
}"""

# Finds tables that are wider than their box and must be scrolled, outside of folded sections.
SCROLLED = """() => [...document.querySelectorAll(".scroll")]
  .filter((box) => !box.closest("details") && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label") + ": " + box.scrollWidth + " in " + box.clientWidth)"""

# Finds text of less than 12 pixels.
SMALL = """() => [...document.querySelectorAll("body *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.checkVisibility())
  .filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12)
  .map((e) => e.tagName + ": " + e.textContent.slice(0, 40))"""

# Finds charts in which two curves differ only in colour.
COLORED = """() => [...document.querySelectorAll("svg.curves")].filter((chart) => {
  const lines = [...chart.querySelectorAll(".line")];
  const shapes = new Set([...chart.querySelectorAll(".dot")].map((dot) => dot.tagName));
  return new Set(lines.map((line) => getComputedStyle(line).strokeDasharray)).size < lines.length
    || shapes.size < lines.length;
}).map((chart) => chart.getAttribute("aria-label"))"""

# Finds text whose contrast to its background is below 4.5, and bars and lines whose contrast is below 3 (WCAG AA).
CONTRAST = """() => {
  const numbers = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => numbers(c).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      const parts = numbers(color);
      if (parts.length && (parts.length < 4 || parts[3] > 0)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const found = new Set();
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(e);
    if (own && e.tagName !== "SCRIPT" && e.checkVisibility()) {
      const color = e.tagName === "text" ? style.fill : style.color;
      if (ratio(color, behind(e)) < 4.5) found.add(e.tagName + " " + color + " on " + behind(e));
    }
    if (e.matches(".bar, .dot, .peak") && ratio(style.fill, behind(e)) < 3) found.add("fill " + style.fill);
    if (e.matches(".line, .mark") && ratio(style.stroke, behind(e)) < 3) found.add("stroke " + style.stroke);
  }
  return [...found];
}"""


def make_sources(command, folder):
    def run(*args):
        subprocess.run([command, *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(select, name):
        run("-c", f"COPY ({select}) TO '{folder / name}'")

    data = ROOT / "tests/data"
    run("generate", "--patients", 3, "--to", "meds", "-o", folder / "three")
    run("convert", folder / "three", folder / "cohort", "--to", "meds-torch-data")
    run("generate", "--patients", 30, "-o", folder / "plain.nrt")
    run("generate", "--patients", 30, "-o", folder / "lists.parquet")
    run("batches", folder / "cohort", "--batch", 2, "--len", 64, "-o", folder / "batches")
    # Write times within a day, and codes without a separator that are longer than a chart is wide.
    write(
        "SELECT 9007199254740000 + value AS id,"
        " array_agg(TIMESTAMP '2020-09-13 12:26:40' + k * INTERVAL '7 minutes') AS time,"
        " array_agg('a sentence without a separator in it that stands for code number ' || (k % 3)) AS code,"
        " array_agg(k * -1.5e9) AS v"
        " FROM generate_series(1, 3) CROSS JOIN generate_series(1, 150) AS u(k) GROUP BY value",
        "long.parquet",
    )
    # Write lists of up to 131,000 elements.
    write(
        "SELECT value AS id, range(0, 100 * CAST(power(1.22, value) AS BIGINT)) AS x FROM generate_series(0, 36)",
        "lengths.parquet",
    )
    names = ["three", "cohort", "plain.nrt", "lists.parquet", "long.parquet", "lengths.parquet", "batches"]
    return [data / "synthea-meds", data / "tiny-meds", *(folder / name for name in names)]


def check_page(browser, page_file, name, shots):
    faults = []
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
            page = context.new_page()
            asked = []
            page.on("console", lambda m: faults.append(f"console: {m.text}"))
            page.on("pageerror", lambda e: faults.append(f"error: {e}"))
            page.on("request", lambda r: asked.append(r.url))
            page.goto(page_file.as_uri())
            page.wait_for_timeout(200)
            where = f"{theme} {width}"
            if [url for url in asked if not url.startswith(("file:", "data:"))] or len(asked) > 2:
                faults.append(f"{where}: requests {asked}")
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                faults.append(f"{where}: wider than the window")
            scripts = [(WIDE, "reaches out"), (COVERED, "covered"), (CROSSED, "crossed"), (CONTRAST, "contrast")]
            scripts += [(SMALL, "small"), (COLORED, "told apart by colour"), (SCROLLED, "scrolled")]
            for script, what in scripts:
                for found in page.evaluate(script)[:5]:
                    faults.append(f"{where}: {what}: {found}")
            sections = page.eval_on_selector_all("section", "all => all.map((s) => s.id)")
            charts = page.locator("svg[role=img]").count()
            if "lengths" in sections and page.locator("#lengths svg[role=img] .bar").count() == 0:
                faults.append(f"{where}: no bars")
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            if (background == "rgb(255, 255, 255)") != (theme == "light"):
                faults.append(f"{where}: background {background}")
            if "timelines" in sections:
                check_chooser(page, faults)
            if page.locator("#lengths .hit").count():
                check_tips(page, faults)
            check_theme(page, faults)
            if shots:
                page.screenshot(path=shots / f"{name}-{width}-{theme}.png", full_page=True)
                page.evaluate("document.documentElement.style.filter = 'grayscale(1)'")
                page.screenshot(path=shots / f"{name}-{width}-{theme}-grey.png", full_page=True)
            context.close()
    # Without the script, all content is shown, and the browser shows its own tooltips.
    context = browser.new_context(java_script_enabled=False, viewport={"width": 400, "height": 900})
    page = context.new_page()
    page.goto(page_file.as_uri())
    if page.locator("#theme:visible, #chooser:visible").count():
        faults.append("without script: controls are shown")
    if page.locator(".timeline").count() != page.locator(".timeline:visible").count():
        faults.append("without script: timelines are hidden")
    context.close()
    return faults, sections, charts


def check_chooser(page, faults):
    choices = page.eval_on_selector_all("#subject option", "all => all.map((o) => o.value)")
    for choice in choices:
        page.select_option("#subject", choice)
        shown = page.eval_on_selector_all(".timeline", "all => all.filter((f) => !f.hidden).map((f) => f.id)")
        if shown != [choice]:
            faults.append(f"chose {choice}, shown {shown}")
    page.select_option("#subject", choices[0])


def check_tips(page, faults):
    page.locator("#lengths .hit").first.hover(position={"x": 2, "y": 100}, force=True)
    text = page.locator("#tip").inner_text()
    if "%" not in text:
        faults.append(f"tip {text!r}")
    page.mouse.move(1, 1)


def check_theme(page, faults):
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen = set()
    for _ in range(3):
        page.click("#theme")
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    if len(seen) != 2 or page.evaluate("getComputedStyle(document.body).backgroundColor") != before:
        faults.append(f"themes {seen}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("data", nargs="*", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    args = parser.parse_args()
    command = args.command.resolve()
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        folder = pathlib.Path(folder)
        browser = play.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        for source in args.data or make_sources(command, folder):
            out = folder / f"{source.name}.html"
            if source.suffix == ".html":
                out = source.resolve()
            else:
                subprocess.run(
                    [command, "report", source, "-o", out], check=True, stdout=subprocess.DEVNULL
                )
            faults, sections, charts = check_page(browser, out, source.name, args.shots)
            print(f"{source.name}: {out.stat().st_size:,} bytes, {charts} charts, {', '.join(sections)}")
            for fault in faults:
                failed = True
                print(f"  {fault}")
        browser.close()
    raise SystemExit(failed)


main()
