"""Puts a text on the clipboard. Shell.

On X11 whoever copies must answer all who paste, for as long as nobody else copies: a thread of ours does that.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from island.desktop.programs import ProgramError, feed

#: The program that copies, by platform. A compositor lets only few programs copy that have no window: this is one.
_PROGRAMS: Mapping[str, str] = {"darwin": "pbcopy", "win32": "clip", "wayland": "wl-copy"}


def copy(text: str, environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Put a text on the clipboard; return what stood in the way, or nothing."""
    kind = "wayland" if environ.get("WAYLAND_DISPLAY") else platform
    word = _copy_by(_PROGRAMS[kind], text) if kind in _PROGRAMS else "there is no clipboard here"
    if word and environ.get("DISPLAY"):  # also on Wayland: compositors share the clipboard of their X server
        return _copy_x11(text)
    return word


def _copy_by(program: str, text: str) -> str:
    try:
        feed(program, text)
    except ProgramError as error:
        return str(error)
    return ""


def _copy_x11(text: str) -> str:
    try:
        owner = _Owner(text)
    except Exception as error:  # noqa: BLE001 - Xlib raises what it likes
        return f"the X server does not answer: {error}"
    threading.Thread(target=owner.answer, name="clipboard", daemon=True).start()
    return ""


class _Owner:
    """Owns the selections of an X server, and hands out a text until another program owns them."""

    SELECTIONS = ("CLIPBOARD", "PRIMARY")

    def __init__(self, text: str) -> None:
        from Xlib import X  # noqa: PLC0415 - is there on Linux alone
        from Xlib.display import Display  # noqa: PLC0415 - as above

        self._text = text.encode()
        self._display = Display()
        self._window = self._display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        self._owned = {self._atom(name) for name in self.SELECTIONS}
        for selection in self._owned:
            self._window.set_selection_owner(selection, X.CurrentTime)
        self._display.sync()

    def answer(self) -> None:
        """Answer those who paste, until everything is owned by others."""
        from Xlib import X  # noqa: PLC0415 - as above

        try:
            while self._owned:
                event = self._display.next_event()
                if event.type == X.SelectionClear:
                    self._owned.discard(event.atom)
                elif event.type == X.SelectionRequest:
                    self._give(event)
            self._display.close()
        except Exception:  # noqa: BLE001 - the server has gone, and with it who could paste
            return

    def _give(self, request: Any) -> None:
        from Xlib import X, Xatom  # noqa: PLC0415 - as above
        from Xlib.protocol.event import SelectionNotify  # noqa: PLC0415 - as above

        text, targets = self._atom("UTF8_STRING"), self._atom("TARGETS")
        place = request.property or request.target  # as old programs ask
        if request.target == targets:
            request.requestor.change_property(place, Xatom.ATOM, 32, [targets, text, Xatom.STRING])
        elif request.target in (text, Xatom.STRING):
            request.requestor.change_property(place, request.target, 8, self._text)
        else:
            place = X.NONE
        request.requestor.send_event(SelectionNotify(
            time=request.time, requestor=request.requestor, selection=request.selection, target=request.target,
            property=place))
        self._display.flush()

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))
