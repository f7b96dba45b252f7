"""Draws the icon's faces, each size for itself. Must not know what a face means, nor use a system font.

The shape tells the state and the colour only repeats it, so that faces stay apart in grey and for the colour-blind (but
for the red, the colours are Okabe and Ito's). A thin dark edge makes one set serve dark and light panels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from PIL import Image, ImageDraw

from island.tray.face import Face

Point = tuple[float, float]
Ink = tuple[int, int, int, int]

GRID = 24  # faces are laid out on a square of 24 units, whatever the size they are drawn at
OVERSAMPLING = 8
CRISP_UP_TO = 36  # marks keep to whole pixels up to this size, and to their true place above it
ROOM_FOR_TWO = 20  # below this size "9+" cannot be read, and 9 stands for it

GREY: Ink = (142, 146, 150, 255)
SKY: Ink = (86, 180, 233, 255)
ORANGE: Ink = (230, 159, 0, 255)
RED: Ink = (204, 36, 48, 255)
GREEN: Ink = (0, 158, 115, 255)
PURPLE: Ink = (204, 121, 167, 255)
WHITE: Ink = (255, 255, 255, 255)
DARK: Ink = (16, 18, 20, 255)
EDGE: Ink = (16, 18, 20, 158)
HOLE: Ink = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Blob:
    """Every place within `radius` of the polygon `points`: a disc, a stroke or a rounded shape."""

    radius: float
    points: tuple[Point, ...]

    def scaled(self, by: float) -> Blob:
        """Return the blob in another unit."""
        return Blob(self.radius * by, tuple((x * by, y * by) for x, y in self.points))

    def grown(self, by: float) -> Blob:
        """Return the blob with its border moved outwards."""
        return Blob(max(self.radius + by, 0), self.points)

    def crisp(self) -> Blob:
        """Return the blob with its border on whole pixels."""
        return Blob(max(round(self.radius * 2), 1) / 2, tuple((round(x), round(y)) for x, y in self.points))


@dataclass(frozen=True, slots=True)
class Look:
    """How a face is drawn: a body with an edge, perhaps hollow, and the marks on it."""

    body: Blob
    ink: Ink
    hollow: Blob | None = None
    marks: tuple[Blob, ...] = ()
    mark: Ink = DARK


def _disc(radius: float, x: float = 12, y: float = 12) -> Blob:
    return Blob(radius, ((x, y),))


def _stroke(width: float, *points: Point) -> tuple[Blob, ...]:
    return tuple(Blob(width / 2, pair) for pair in pairwise(points))


def _diamond(reach: float, rounding: float) -> Blob:
    return Blob(rounding, ((12, 12 - reach), (12 + reach, 12), (12, 12 + reach), (12 - reach, 12)))


LOOKS: Mapping[Face, Look] = {
    Face.IDLE: Look(_disc(8), GREY, hollow=_disc(5.4)),
    Face.CALM: Look(_diamond(8.6, 1.2), ORANGE, hollow=_diamond(5.2, 0.9)),
    Face.WORKING: Look(_disc(9.2), SKY, marks=(Blob(0.4, ((9.6, 8), (16.2, 12), (9.6, 16))),)),
    Face.STALLED: Look(  # dots: it went silent in the middle of something
        Blob(1.5, ((12, 3.6), (21.4, 20.2), (2.6, 20.2))), PURPLE,
        marks=(_disc(1.35, 7.5, 17), _disc(1.35, 12, 17), _disc(1.35, 16.5, 17)),
    ),
    Face.DONE: Look(
        _disc(9.5), GREEN, marks=_stroke(2.8, (7.6, 12.4), (10.6, 15.4), (16.6, 8.9)), mark=WHITE,
    ),
    Face.ERROR: Look(
        Blob(2.5, ((5, 5), (19, 5), (19, 19), (5, 19))), RED,
        marks=_stroke(3, (8.4, 8.4), (15.6, 15.6)) + _stroke(3, (15.6, 8.4), (8.4, 15.6)), mark=WHITE,
    ),
    Face.YOUR_TURN: Look(
        _diamond(9.8, 1.2), ORANGE, marks=(*_stroke(2.8, (12, 7.2), (12, 12.4)), _disc(1.5, 12, 16.8)),
    ),
}

#: Digits as strokes between the six corners of two stacked squares, A B over C D over E F.
CORNERS: Mapping[str, Point] = {"A": (0, 0), "B": (1, 0), "C": (0, 1), "D": (1, 1), "E": (0, 2), "F": (1, 2)}
DIGITS: Mapping[str, str] = {
    "2": "ABDCEF", "3": "ABFE CD", "4": "ACD BF", "5": "BACDFE", "6": "BAEFDC", "7": "ABF",
    "8": "ABFEA CD", "9": "DCABFE",
}


def draw(face: Face, size: int, badge: int = 0, *, template: bool = False) -> Image.Image:
    """Return a face, `size` pixels wide, for reading only: it is kept and handed out again.

    badge: how many sessions wait; two or more are written on the face, except on an error's.
    template: black and alpha only, as macOS wants an icon that follows the menu bar's colour.
    """
    shown = 0 if badge < 2 or face is Face.ERROR else min(badge, 10)
    return _drawn(face, size, shown, template)


def argb(image: Image.Image) -> bytes:
    """Return the pixels as ARGB32 in network byte order, as StatusNotifierItem wants them."""
    red, green, blue, alpha = image.split()
    return Image.merge("RGBA", (alpha, red, green, blue)).tobytes()


@lru_cache(maxsize=128)
def _drawn(face: Face, size: int, badge: int, template: bool) -> Image.Image:
    sheet = Image.new("RGBA", (size * OVERSAMPLING, size * OVERSAMPLING), HOLE)
    pen = ImageDraw.Draw(sheet)
    for blob, ink in _layers(LOOKS[face], size, badge, template):
        _paint(pen, blob.scaled(OVERSAMPLING), ink)
    return sheet.reduce(OVERSAMPLING)


def _layers(look: Look, size: int, badge: int, template: bool) -> Iterator[tuple[Blob, Ink]]:
    """Yield what to paint, in pixels, bottom first. Ink replaces what lies below, so a hole is an ink too."""
    unit = size / GRID
    edge = max(0.5 * unit, 0.35)
    body = look.body.scaled(unit)
    if not template:
        yield body.grown(edge), EDGE
    yield body, DARK if template else look.ink
    if look.hollow:
        hollow = look.hollow.scaled(unit)
        if not template:
            yield hollow, EDGE
        yield hollow.grown(0 if template else -edge), HOLE
    if badge:  # stands in for the marks: both on one small face are a blot
        yield from _badge("9+" if badge > 9 and size >= ROOM_FOR_TWO else str(min(badge, 9)), size)
        return
    for mark in look.marks:
        scaled = mark.scaled(unit)
        yield scaled.crisp() if size <= CRISP_UP_TO else scaled, HOLE if template else look.mark


def _badge(text: str, size: int) -> Iterator[tuple[Blob, Ink]]:
    """Yield a white box with a number in the lower right corner, every straight border on a whole pixel."""
    rim, margin = max(round(size / GRID), 1), max(size // 16, 1)
    tall = round(size * 0.56) - 2 * (rim + margin)
    stroke = max(round(tall / 5), 1)
    tall -= (tall - stroke) % 2  # then the middle bar lies on whole pixels too
    wide = round(tall * 0.7)
    step = wide + max(stroke // 2, 1)
    height = tall + 2 * (rim + margin)
    width = max(step * (len(text) - 1) + wide + 2 * (rim + margin), height)
    rounding = height * 0.3
    left, top, end = size - width + rounding, size - height + rounding, size - rounding
    box = Blob(rounding, ((left, top), (end, top), (end, end), (left, end)))
    yield box, DARK
    yield box.grown(-rim), WHITE
    start = size - width + (width - step * (len(text) - 1) - wide) // 2
    for place, char in enumerate(text):
        corner = (start + step * place, size - height + rim + margin)
        for bar in _digit(char, corner, wide, tall, stroke):
            yield bar, DARK


def _digit(char: str, corner: Point, wide: float, tall: float, stroke: float) -> Iterator[Blob]:
    x, y, half = corner[0] + stroke / 2, corner[1] + stroke / 2, stroke / 2
    across, down = wide - stroke, (tall - stroke) / 2
    if char == "+":
        yield Blob(half, ((x, y + down), (x + across, y + down)))
        yield Blob(half, ((x + across / 2, y + down - across / 2), (x + across / 2, y + down + across / 2)))
        return
    for path in DIGITS[char].split():
        for pair in pairwise(path):
            yield Blob(half, tuple((x + CORNERS[c][0] * across, y + CORNERS[c][1] * down) for c in pair))


def _paint(pen: ImageDraw.ImageDraw, blob: Blob, ink: Ink) -> None:
    """Paint a blob. Pillow counts pixels by their middle and includes both borders: half a pixel each."""
    points = [(x - 0.5, y - 0.5) for x, y in blob.points]
    reach = max(blob.radius - 0.5, 0)
    if len(points) > 2:
        pen.polygon(points, fill=ink)
    for (ax, ay), (bx, by) in pairwise([*points, points[0]]):
        length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5 or 1
        x, y = (ay - by) / length * reach, (bx - ax) / length * reach
        pen.polygon([(ax + x, ay + y), (bx + x, by + y), (bx - x, by - y), (ax - x, ay - y)], fill=ink)
    for x, y in points:
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=ink)
