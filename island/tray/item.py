"""A tray model as org.kde.StatusNotifierItem, the protocol of tray hosts. Must not decide what is shown."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any

from dbus_fast import PropertyAccess
from dbus_fast.annotations import DBusInt32, DBusSignature, DBusStr
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property, dbus_signal

from island.text import markup
from island.tray.face import Face
from island.tray.icon import argb, draw
from island.tray.menu import TrayModel

MENU_PATH = "/MenuBar"
SIZES = (16, 22, 24, 32, 44, 48)
WIDEST_BADGE = 9


@lru_cache(maxsize=16)
def pixmaps(face: Face, badge: int) -> list[tuple[int, int, bytes]]:
    """Return the face at every size that hosts are known to choose from."""
    return [(size, size, argb(draw(face, size, badge))) for size in SIZES]


def _pixmap(model: TrayModel) -> list[tuple[int, int, bytes]]:
    return pixmaps(model.face, model.badge)


def _status(model: TrayModel) -> str:
    return "NeedsAttention" if model.attention else "Active"


def _tool_tip(model: TrayModel) -> list[Any]:
    """Return the tooltip: some hosts show the title only, and some read the rest as markup."""
    return ["", [], model.title, "\n".join(map(markup, model.lines))]


def _label(model: TrayModel) -> str:
    """Return the count where the icon itself cannot tell it."""
    return str(model.badge) if model.badge > WIDEST_BADGE else ""


def _property(name: str, signature: str, value: Callable[[TrayModel], Any]) -> property:
    """Return a D-Bus property that is read from the model."""
    def getter(self: "Item") -> Any:
        return value(self.model)

    getter.__name__ = name  # dbus-fast finds the property by it
    getter.__annotations__["return"] = signature
    return dbus_property(PropertyAccess.READ)(getter)


class Item(ServiceInterface):
    """The item as hosts see it. Every property has a value: GNOME drops an item without them."""

    def __init__(self, on_activate: Callable[[], None]) -> None:
        super().__init__("org.kde.StatusNotifierItem")
        self.model = TrayModel()
        self._on_activate = on_activate

    def show(self, new: TrayModel) -> None:
        """Show this, and tell hosts what of it is new."""
        old, self.model = self.model, new
        with suppress(OSError):  # the bus is going; the next host reads everything anew
            self._tell(old, new)

    def _tell(self, old: TrayModel, new: TrayModel) -> None:
        if _pixmap(old) != _pixmap(new):
            self.new_icon()
            self.new_attention_icon()
        if old.title != new.title:
            self.new_title()
        if (old.title, old.lines) != (new.title, new.lines):
            self.new_tool_tip()
        if _status(old) != _status(new):
            self.new_status()
        if _label(old) != _label(new):
            self.new_label()

    Category = _property("Category", "s", lambda _: "ApplicationStatus")
    Id = _property("Id", "s", lambda _: "island")
    Title = _property("Title", "s", lambda model: model.title)
    Status = _property("Status", "s", _status)
    WindowId = _property("WindowId", "i", lambda _: 0)
    IconThemePath = _property("IconThemePath", "s", lambda _: "")
    IconName = _property("IconName", "s", lambda _: "")
    IconPixmap = _property("IconPixmap", "a(iiay)", _pixmap)
    OverlayIconName = _property("OverlayIconName", "s", lambda _: "")
    OverlayIconPixmap = _property("OverlayIconPixmap", "a(iiay)", lambda _: [])
    AttentionIconName = _property("AttentionIconName", "s", lambda _: "")
    AttentionIconPixmap = _property("AttentionIconPixmap", "a(iiay)", _pixmap)
    AttentionMovieName = _property("AttentionMovieName", "s", lambda _: "")
    ToolTip = _property("ToolTip", "(sa(iiay)ss)", _tool_tip)
    ItemIsMenu = _property("ItemIsMenu", "b", lambda _: True)
    Menu = _property("Menu", "o", lambda _: MENU_PATH)
    XAyatanaLabel = _property("XAyatanaLabel", "s", _label)

    @dbus_method("Activate")
    def _activate(self, x: DBusInt32, y: DBusInt32) -> None:  # noqa: ARG002
        asyncio.get_running_loop().call_soon(self._on_activate)  # not now: the host waits for an answer

    # The rest of what a host may call: nothing may hang on a middle click or a wheel, which many do not have.

    @dbus_method("ContextMenu")
    def _context_menu(self, x: DBusInt32, y: DBusInt32) -> None:
        pass

    @dbus_method("SecondaryActivate")
    def _secondary_activate(self, x: DBusInt32, y: DBusInt32) -> None:
        pass

    @dbus_method("Scroll")
    def _scroll(self, delta: DBusInt32, orientation: DBusStr) -> None:
        pass

    @dbus_method("ProvideXdgActivationToken")
    def _provide_xdg_activation_token(self, token: DBusStr) -> None:
        pass

    @dbus_signal("NewIcon")
    def new_icon(self) -> None:
        """Tell hosts to read IconPixmap again."""

    @dbus_signal("NewAttentionIcon")
    def new_attention_icon(self) -> None:
        """Tell hosts to read AttentionIconPixmap again."""

    @dbus_signal("NewOverlayIcon")
    def new_overlay_icon(self) -> None:
        """Stand in the interface; island has no overlay."""

    @dbus_signal("NewTitle")
    def new_title(self) -> None:
        """Tell hosts to read Title again."""

    @dbus_signal("NewToolTip")
    def new_tool_tip(self) -> None:
        """Tell hosts to read ToolTip again."""

    @dbus_signal("NewStatus")
    def new_status(self) -> DBusStr:
        """Tell hosts the new status."""
        return _status(self.model)

    @dbus_signal("XAyatanaNewLabel")
    def new_label(self) -> Annotated[list[str], DBusSignature("ss")]:
        """Tell hosts the new label, and the widest one to leave room for."""
        return [_label(self.model), "99"]
