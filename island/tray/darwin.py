"""pystray's icon, mended for macOS: sharp, of the menu bar's colour, and touched on the main thread only.

Must not be imported elsewhere than on macOS, where AppKit comes with pystray.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import AppKit
import pystray
from PyObjCTools import AppHelper

from island.tray.face import Face
from island.tray.icon import draw

Menu, MenuItem = pystray.Menu, pystray.MenuItem

POINTS = 18  # the height of an icon in the menu bar
SCALES = (1, 2)  # plain and Retina screens
MENU_CHECK = 0.1
ACCESSORY = 1  # the activation policy without an icon in the Dock

#: Faces that nobody has to look at take the menu bar's colour, dark or light.
QUIET = frozenset({Face.IDLE, Face.CALM, Face.WORKING})


class Icon(pystray.Icon):  # type: ignore[misc]
    """An icon whose picture is a face and a badge."""

    def run(self, setup: Callable[[Any], None]) -> None:
        """Show the icon until it is stopped."""
        AppKit.NSApplication.sharedApplication().setActivationPolicy_(ACCESSORY)
        super().run(setup)

    def post(self, act: Callable[[], None]) -> None:
        """Call `act` on the main thread, from any thread, once no menu is open."""
        AppHelper.callAfter(self._when_closed, act)

    def _when_closed(self, act: Callable[[], None]) -> None:
        # A new menu under an open one would make a click hit another row.
        if AppKit.NSRunLoop.mainRunLoop().currentMode() == AppKit.NSEventTrackingRunLoopMode:
            AppHelper.callLater(MENU_CHECK, self._when_closed, act)
        else:
            act()

    def _assert_image(self) -> None:
        face, badge = self._icon
        image = AppKit.NSImage.alloc().initWithSize_((POINTS, POINTS))
        for scale in SCALES:
            image.addRepresentation_(_pixels(png(face, badge, POINTS * scale)))
        image.setTemplate_(face in QUIET)
        self._icon_image = image
        self._status_item.button().setImage_(image)


def png(face: Face, badge: int, size: int) -> bytes:
    """Return the face as a PNG file, and a quiet one as black and alpha."""
    file = BytesIO()
    draw(face, size, badge, template=face in QUIET).save(file, "PNG")
    return file.getvalue()


def label(text: str) -> str:
    """Return a menu row's text as macOS wants it: as it is."""
    return text


def _pixels(file: bytes) -> Any:
    pixels = AppKit.NSBitmapImageRep.imageRepWithData_(AppKit.NSData.dataWithBytes_length_(file, len(file)))
    pixels.setSize_((POINTS, POINTS))
    return pixels
