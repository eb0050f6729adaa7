"""Draws the documentation's pictures as SVG: boxes, arrows, marks and text, for light and dark, 480 units wide.

A picture has its own background, because a reader may switch a page to dark mode independently of the system.
"""

from __future__ import annotations

from html import escape

WIDTH = 480
STYLE = """
    .page { fill: #ffffff; stroke: #d0d7de; }
    .box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5; }
    .own { fill: #fff8e1; stroke: #9a6700; stroke-width: 1.5; }
    .store { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.5; }
    .good { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.5; }
    .bad { fill: #ffebe9; stroke: #cf222e; stroke-width: 1.5; }
    .band { fill: #eaeef2; }
    .name { fill: #1f2328; font-size: 15px; font-weight: 600; }
    .say { fill: #1f2328; font-size: 14px; }
    .sub { fill: #4b535b; font-size: 13px; }
    .way { fill: none; stroke: #1f2328; stroke-width: 1.6; }
    .late { fill: none; stroke: #57606a; stroke-width: 1.6; stroke-dasharray: 6 5; }
    .axis { stroke: #8c959f; stroke-width: 1; }
    .tip { fill: #1f2328; }
    .mid { text-anchor: middle; }
    .end { text-anchor: end; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #30363d; }
      .box { fill: #161b22; stroke: #8b949e; }
      .own { fill: #2b230c; stroke: #d29922; }
      .store { fill: #0c2238; stroke: #58a6ff; }
      .good { fill: #0f2a17; stroke: #3fb950; }
      .bad { fill: #2d1114; stroke: #f85149; }
      .band { fill: #21262d; }
      .name, .say { fill: #f0f6fc; }
      .sub { fill: #b1bac4; }
      .way { stroke: #f0f6fc; }
      .late { stroke: #8b949e; }
      .axis { stroke: #6e7681; }
      .tip { fill: #f0f6fc; }
    }
"""


class Picture:
    """One picture. title, words: its name and description for screen readers."""

    def __init__(self, title: str, words: str) -> None:
        self._title, self._words = title, words
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str = "say", at: str = "") -> None:
        """Writes a text that begins at x. at: `mid` or `end` to put its middle or its end at x."""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind} {at}">{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, name: str, *below: str, kind: str = "box") -> None:
        """Draws a box with a name and lines of smaller text. Its height is 32, and 18 for each line."""
        height = 32 + 18 * len(below)
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height}" rx="6" class="{kind}"/>')
        self.text(x + width / 2, y + 21, name, "name", "mid")
        for n, line in enumerate(below):
            self.text(x + width / 2, y + 39 + 18 * n, line, "sub", "mid")

    def band(self, x: float, y: float, width: float, height: float) -> None:
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="band"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="axis"/>')

    def arrow(self, *points: tuple[float, float], kind: str = "way") -> None:
        steps = " ".join(f"{'ML'[n > 0]}{x:g} {y:g}" for n, (x, y) in enumerate(points))
        self._parts.append(f'<path d="{steps}" class="{kind}" marker-end="url(#tip)"/>')

    def mark(self, x: float, y: float, what: str) -> None:
        """Marks an occurrence, by shape and colour. what: runs, left-out or planned."""
        shape = {
            "runs": f'<circle cx="{x:g}" cy="{y:g}" r="7" class="good"/>',
            "left-out": f'<path d="M{x - 6:g} {y - 6:g}l12 12m0 -12l-12 12" class="bad"/>',
            "planned": f'<circle cx="{x:g}" cy="{y:g}" r="6" class="late"/>',
        }
        self._parts.append(shape[what])

    def legend(self, y: float, *entries: tuple[float, str, str]) -> None:
        """Draws the legend of the marks. entries: the position, the mark and its meaning."""
        for x, what, word in entries:
            self.mark(x, y, what)
            self.text(x + 14, y + 5, word, "sub")

    def svg(self, height: float) -> str:
        inner = "\n  ".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
            f' aria-labelledby="title words"'
            f" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
            f'  <title id="title">{escape(self._title)}</title>\n  <desc id="words">{escape(self._words)}</desc>\n'
            f"  <style>{STYLE}  </style>\n"
            '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8"'
            ' orient="auto-start-reverse"><path class="tip" d="M0 0 10 5 0 10z"/></marker></defs>\n'
            f'  <rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8" class="page"/>\n'
            f"  {inner}\n</svg>\n"
        )
