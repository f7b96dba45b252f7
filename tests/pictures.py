"""Makes the README's pictures: the icons as they are drawn, and a real panel while `island demo` plays.

    python tests/pictures.py        (needs the Debian packages that tests/desktop/desk.py names)
"""

import sys
import tempfile
from pathlib import Path
from subprocess import DEVNULL, Popen

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from island.tray.icon import draw  # noqa: E402
from island.tray.menu import Face  # noqa: E402
from tests.desktop.desk import ICON, Desk  # noqa: E402
from tests.desktop.stage import wait_until  # noqa: E402

SIZES = (16, 22, 32, 48)
DARK, LIGHT = "#2e3440", "#f0f0f0"
GAP = 14

#: Plays the demonstration with the menu that a real session has.
AS_REAL = "from island.__main__ import main; from island.cli import demo; demo.shown = lambda tray: tray; main()"


def icons() -> Image.Image:
    """Return a sheet: a column for each face, a row for each size, on a dark and on a light panel."""
    faces = list(reversed(Face))
    column = max(SIZES) + GAP
    height = sum(SIZES) + GAP * (len(SIZES) + 1)
    sheet = Image.new("RGB", (column * len(faces) + GAP, 2 * height))
    for top, colour in ((0, DARK), (height, LIGHT)):
        sheet.paste(colour, (0, top, sheet.width, top + height))
        y = top + GAP
        for size in SIZES:
            for x, face in enumerate(faces):
                picture = draw(face, size, badge=3 if face is Face.YOUR_TURN and size > 16 else 0)
                sheet.paste(picture, (GAP + x * column + (max(SIZES) - size) // 2, y), picture)
            y += size + GAP
    return sheet


def menu(path: Path) -> None:
    """Save a real panel with the open menu and a notice, while the demonstration plays."""
    with tempfile.TemporaryDirectory() as folder, Desk(Path(folder)) as desk:
        command = [sys.executable, "-c", AS_REAL, "demo"]
        demo = Popen(command, env=desk.environment, cwd=HERE.parent, stdout=DEVNULL)
        try:
            wait_until(lambda: desk.windows("dunst") == 1, deadline=60)
            desk.click(*ICON)
            wait_until(lambda: desk.pixel(2, 60) != "000000")
            desk.press("Down", "Right")
            wait_until(lambda: desk.pixel(700, 60) != "000000", deadline=10)
            desk.screenshot(path, "1000x345+0+0")
        finally:
            demo.terminate()
            demo.wait()


if __name__ == "__main__":
    pictures = HERE / "pictures"
    pictures.mkdir(exist_ok=True)
    icons().save(pictures / "icons.png")
    menu(pictures / "menu.png")
