"""A font in which every character is the same block and a blank is blank, so that text takes the same place in every
browser, whatever fonts the machine has. TrueType by the OpenType specification 1.9."""

from __future__ import annotations

import base64
import struct

EM = 1000
WIDTH = 550
TOP, BOTTOM = 900, -250
BLOCK = [(60, 0), (60, 560), (490, 560), (490, 0)]
EVERY_CHARACTER = [(0x20, 0x20, 2), (0x21, 0x9F, 1), (0xA0, 0xA0, 2), (0xA1, 0xD7FF, 1), (0xE000, 0x10FFFF, 1)]
"""Ranges of characters with their glyph: 1 is the block, 2 the blank."""


def font() -> bytes:
    tables = {
        b"OS/2": _os2(),
        b"cmap": _cmap(),
        b"glyf": _block(),
        b"head": struct.pack(
            ">LLLLHHqqhhhhHHhhh",
            *(0x10000, 0x10000, 0, 0x5F0F3CF5, 0b11, EM, 0, 0, 60, 0, 490, 560, 0, 8, 2, 1, 0),
        ),
        b"hhea": struct.pack(">LhhhHhhh hhh hhhh hH", 0x10000, TOP, BOTTOM, 0, WIDTH, 60, 60, 490, 1, *[0] * 7, 3),
        b"hmtx": struct.pack(">HhHhHh", WIDTH, 60, WIDTH, 60, WIDTH, 0),
        b"loca": struct.pack(">LLLL", 0, len(_block()), 2 * len(_block()), 2 * len(_block())),
        b"maxp": struct.pack(">L14H", 0x10000, 3, 4, 1, 0, 0, 2, *[0] * 8),
        b"name": struct.pack(">HHH", 0, 0, 6),
        b"post": struct.pack(">LLhhLLLLL", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }
    tables[b"glyf"] += _block()
    return _file(tables)


def as_style() -> str:
    """Returns a style sheet that sets every text in blocks."""
    source = base64.b64encode(font()).decode()
    face = f"@font-face {{ font-family: Blocks; src: url(data:font/ttf;base64,{source}); }}"
    return f"{face} *, ::before, ::after, ::placeholder {{ font-family: Blocks !important; }}"


def _block() -> bytes:
    xs, ys = [x for x, _ in BLOCK], [y for _, y in BLOCK]
    steps = [*(x - before for before, x in zip([0, *xs], xs, strict=False))]
    rises = [*(y - before for before, y in zip([0, *ys], ys, strict=False))]
    outline = struct.pack(">hhhhh HH 4B 4h 4h", 1, 60, 0, 490, 560, 3, 0, *[1] * 4, *steps, *rises)
    return outline + b"\0" * (-len(outline) % 4)


def _cmap() -> bytes:
    groups = b"".join(struct.pack(">LLL", *each) for each in EVERY_CHARACTER)
    many_to_one = struct.pack(">HHLLL", 13, 0, 16 + len(groups), 0, len(EVERY_CHARACTER)) + groups
    return struct.pack(">HHHHL", 0, 1, 3, 10, 12) + many_to_one


def _os2() -> bytes:
    start = struct.pack(">HhHHH 10h h 10B 4L 4s", 4, WIDTH, 400, 5, 0, *[0] * 10, 0, *[0] * 10, 1, 0, 0, 0, b"NONE")
    end = struct.pack(
        ">HHH hhh HH LL hh HHH", 0x40, 0x20, 0xFFFF, TOP, BOTTOM, 0, TOP, -BOTTOM, 0, 0, 560, 560, 0, 32, 1
    )
    return start + end


def _file(tables: dict[bytes, bytes]) -> bytes:
    place = 12 + 16 * len(tables)
    directory, content = b"", b""
    for tag in sorted(tables):
        padded = tables[tag] + b"\0" * (-len(tables[tag]) % 4)
        directory += struct.pack(">4sLLL", tag, _sum(padded), place + len(content), len(tables[tag]))
        content += padded
    return struct.pack(">LHHHH", 0x10000, len(tables), 128, 3, 16 * len(tables) - 128) + directory + content


def _sum(padded: bytes) -> int:
    return sum(struct.unpack(f">{len(padded) // 4}L", padded)) & 0xFFFFFFFF
