"""How a page looks: pictures of it in four forms, and for each a grid of coarse colours that a later one is held
against. The grid is taken with every text set in blocks, because fonts differ between machines."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.conftest import picture

ACCEPTED = Path(__file__).parent / "accepted"
SIZES = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 390, "height": 844}}
SCHEMES = ("light", "dark")
ALL = tuple((scheme, size) for size in SIZES for scheme in SCHEMES)
OF_DIALOGS = (("light", "wide"), ("dark", "narrow"))
"""Each size and each scheme once: a dialog is small, and made of the same parts as the pages."""
CELL_PX = 32
LEVELS = 64
NEAR = 2
"""Levels by which a cell's colour may differ: another version of the browser draws edges a little differently."""
MOST_CELLS_OFF = 2
GRID = """async ([png, side]) => {
    const bytes = Uint8Array.from(atob(png), (each) => each.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.width, image.height);
    const [columns, rows] = [Math.ceil(image.width / side), Math.ceil(image.height / side)];
    const sums = new Float64Array(columns * rows * 3), counts = new Float64Array(columns * rows);
    for (let y = 0, at = 0; y < image.height; y += 1) {
        for (let x = 0; x < image.width; x += 1, at += 4) {
            const cell = Math.floor(y / side) * columns + Math.floor(x / side);
            counts[cell] += 1;
            for (let colour = 0; colour < 3; colour += 1) sums[3 * cell + colour] += data[at + colour];
        }
    }
    return [columns, Array.from(sums, (sum, index) => sum / counts[Math.floor(index / 3)])];
}"""


@dataclass(frozen=True)
class Grid:
    """columns: cells in a row. levels: red, green and blue of each cell, row by row."""

    columns: int
    levels: bytes

    def to_text(self) -> str:
        return f"{self.columns} {base64.b64encode(zlib.compress(self.levels, 9)).decode()}"

    @classmethod
    def from_text(cls, text: str) -> Grid:
        columns, levels = text.split()
        return cls(int(columns), zlib.decompress(base64.b64decode(levels)))

    def differs_from(self, other: Grid) -> str:
        """Says in words where two grids differ, and returns an empty string where they are near enough."""
        if (self.columns, len(self.levels)) != (other.columns, len(other.levels)):
            return f"it is {self._size()} px, and was {other._size()} px"
        off = [
            cell
            for cell in range(len(self.levels) // 3)
            if any(abs(self.levels[at] - other.levels[at]) > NEAR for at in range(3 * cell, 3 * cell + 3))
        ]
        if len(off) <= MOST_CELLS_OFF:
            return ""
        down, across = divmod(off[0], self.columns)
        return (
            f"{len(off)} places differ, the first {across * CELL_PX} px from the left, {down * CELL_PX} px from the top"
        )

    def _size(self) -> str:
        return f"{self.columns * CELL_PX} x {len(self.levels) // 3 // self.columns * CELL_PX}"


def grid_of(page: Page, png: bytes) -> Grid:
    """Returns the grid of a picture. page: a browser that reads it."""
    columns, colours = page.evaluate(GRID, [base64.b64encode(png).decode(), CELL_PX])
    return Grid(columns, bytes(int(colour * LEVELS / 256) for colour in colours))


def accepted(look: str) -> dict[str, Grid]:
    """Returns the grids of a look that somebody has accepted, by page."""
    path = ACCEPTED / f"{look}.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: Grid.from_text(text) for name, text in (line.split(" ", 1) for line in lines)}


def accept(look: str, grids: dict[str, Grid]) -> None:
    lines = [f"{name} {grid.to_text()}\n" for name, grid in grids.items()]
    (ACCEPTED / f"{look}.txt").write_text("".join(lines), encoding="utf-8")


def put_on(page: Page, size: str, scheme: str) -> None:
    """Gives the page a size and a colour scheme, and waits until it is drawn so."""
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pictures_of(page: Page, reader: Page, name: str, look: str, *, whole: bool = True) -> Grid:
    """Writes the picture that people look at, and returns the grid of the same page in blocks.

    whole: also what is below the window.
    """
    picture(page, f"{name}-{look}")
    page.evaluate("() => { blocks.disabled = false; }")
    png = page.screenshot(full_page=whole, animations="disabled", caret="hide")
    page.evaluate("() => { blocks.disabled = true; }")
    return grid_of(reader, png)
