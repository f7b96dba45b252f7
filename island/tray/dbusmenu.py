"""Menu rows as com.canonical.dbusmenu, which StatusNotifierItem hosts read. Must not know what rows mean.

All methods are here, though most hosts use few: Cinnamon shows an empty menu when one is missing.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from typing import Annotated, Any

from dbus_fast import PropertyAccess, Variant
from dbus_fast.annotations import DBusBool, DBusInt32, DBusSignature, DBusStr, DBusUInt32, DBusVariant
from dbus_fast.errors import DBusError
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property, dbus_signal

from island.tray.entry import MenuRow, RowKind
from island.tray.pace import Pace
from island.tray.rows import ROOT, NumberedRows

Names = Annotated[list[str], DBusSignature("as")]
Numbers = Annotated[list[int], DBusSignature("ai")]
Properties = dict[str, Variant]

SUBMENU: Properties = {"children-display": Variant("s", "submenu")}

TEXT_GAP = 1.0  # who reads a menu wants it to stand still
LAYOUT_GAP = 1.0  # at two layouts a second Qt's menu did not come up at all
LONGEST_HOLD = 10.0  # an open menu is left alone this long; not every host says that it was closed


class DBusMenu(ServiceInterface):
    """The menu as hosts see it."""

    def __init__(self, on_click: Callable[[str], None], on_closed: Callable[[], None]) -> None:
        super().__init__("com.canonical.dbusmenu")
        self._on_click = on_click
        self._on_closed = on_closed
        self._rows = NumberedRows()
        self._wanted: tuple[MenuRow, ...] = ()
        self._revision = 1
        self._open_until = 0.0
        self._texts = Pace(TEXT_GAP, self._reword)
        self._layout = Pace(LAYOUT_GAP, self._publish)

    def show(self, rows: tuple[MenuRow, ...]) -> None:
        """Show these rows soon: new texts in place, also in an open menu; new or missing rows as a new layout."""
        if rows != self._wanted:
            self._wanted = rows
            self._texts.ask()

    def held(self) -> float:
        """Return for how many seconds more what the user is looking at is left alone; 0 if no menu is open."""
        return max(0.0, self._open_until - asyncio.get_running_loop().time())

    def stop(self) -> None:
        """Forget what is still due."""
        self._texts.stop()
        self._layout.stop()

    def _reword(self) -> None:
        if changed := self._rows.reword(self._wanted):
            with suppress(OSError):  # the bus is going; the next host reads everything anew
                self.items_properties_updated(changed)
        if self._rows.differs(self._wanted):
            self._layout.ask()

    def _publish(self) -> None:
        """Replace the layout, unless the user is looking at it."""
        if held := self.held():
            self._layout.wait(held)
            return
        self._rows.publish(self._wanted, asyncio.get_running_loop().time())
        self._revision += 1
        with suppress(OSError):
            self.layout_updated()

    def _heard(self, number: int, event: str) -> bool:
        """Take one event of the host; say whether its row is known."""
        if event in {"opened", "clicked"} or (event == "closed" and number == ROOT):
            self._opened(event == "opened")
        if number == ROOT:
            return True
        row = self._rows.find(number)
        if row and row.enabled and event == "clicked":
            # Not now: the host waits for an answer.
            asyncio.get_running_loop().call_soon(self._on_click, row.key)
        return row is not None

    def _opened(self, is_open: bool) -> None:
        """Take note that something of the menu was opened, or that all of it was closed, as by a click on a row."""
        self._open_until = 0.0
        if is_open:
            self._hold()
        if self._rows.differs(self._wanted):
            self._layout.stop()
            self._layout.ask()
        if not is_open:
            self._on_closed()

    def _hold(self) -> None:
        self._open_until = asyncio.get_running_loop().time() + LONGEST_HOLD

    def _refresh(self, number: int) -> bool:
        """Bring the menu up to date just before it is shown; say whether its layout changed.

        It counts as open from then on: of the menu itself GTK's hosts tell neither that it was opened nor closed.
        """
        self._reword()
        changed = number == ROOT and self._rows.differs(self._wanted)
        if changed:
            self._open_until = 0.0
            self._layout.wait(0)
        self._hold()
        return changed

    def _node(self, number: int, depth: int, names: Container[str]) -> list[Any]:
        """Return a row, and as many levels of what it opens; -1: all."""
        below = self._rows.within(number) if depth else ()
        children = [Variant("(ia{sv}av)", self._node(row, depth - 1, names)) for row in below]
        return [number, self._all_of(number, names), children]

    def _all_of(self, number: int, names: Container[str]) -> Properties:
        row = self._rows.find(number)
        everything = _properties(row) if row else {}
        if number == ROOT or self._rows.within(number):
            everything |= SUBMENU
        return {name: value for name, value in everything.items() if not names or name in names}

    # -- the interface ------------------------------------------------------------------------------------

    @dbus_property(PropertyAccess.READ, "Version")
    def _version(self) -> DBusUInt32:
        return 3

    @dbus_property(PropertyAccess.READ, "TextDirection")
    def _text_direction(self) -> DBusStr:
        return "ltr"

    @dbus_property(PropertyAccess.READ, "Status")
    def _status(self) -> DBusStr:
        return "normal"

    @dbus_property(PropertyAccess.READ, "IconThemePath")
    def _icon_theme_path(self) -> Names:
        return []

    @dbus_method("GetLayout")
    def _get_layout(
        self, parent: DBusInt32, depth: DBusInt32, names: Names,
    ) -> Annotated[list[Any], DBusSignature("u(ia{sv}av)")]:
        if parent != ROOT and parent not in self._rows.published:
            raise _unknown(parent)
        self._reword()  # who reads anew reads the newest
        return [self._revision, self._node(parent, depth, names)]

    @dbus_method("GetGroupProperties")
    def _get_group_properties(
        self, numbers: Numbers, names: Names,
    ) -> Annotated[list[Any], DBusSignature("a(ia{sv})")]:
        known = [ROOT, *self._rows.published]
        return [self._node(number, 0, names)[:2] for number in numbers or known if number in known]

    @dbus_method("GetProperty")
    def _get_property(self, number: DBusInt32, name: DBusStr) -> DBusVariant:
        properties = self._all_of(number, (name,))
        if name not in properties:
            raise _unknown(number)
        return properties[name]

    @dbus_method("Event")
    def _event(self, number: DBusInt32, event: DBusStr, value: DBusVariant, at: DBusUInt32) -> None:  # noqa: ARG002
        self._heard(number, event)

    @dbus_method("EventGroup")
    def _event_group(self, events: Annotated[list[Any], DBusSignature("a(isvu)")]) -> Numbers:
        return [number for number, event, _, _ in events if not self._heard(number, event)]

    @dbus_method("AboutToShow")
    def _about_to_show(self, number: DBusInt32) -> DBusBool:
        return self._refresh(number)

    @dbus_method("AboutToShowGroup")
    def _about_to_show_group(self, numbers: Numbers) -> Annotated[list[Any], DBusSignature("aiai")]:
        unknown = [number for number in numbers if number != ROOT and self._rows.find(number) is None]
        return [[number for number in numbers if self._refresh(number)], unknown]

    @dbus_signal("LayoutUpdated")
    def layout_updated(self) -> Annotated[list[int], DBusSignature("ui")]:
        """Tell hosts to read the layout again."""
        return [self._revision, ROOT]

    @dbus_signal("ItemsPropertiesUpdated")
    def items_properties_updated(
        self, changed: Mapping[int, MenuRow],
    ) -> Annotated[list[Any], DBusSignature("a(ia{sv})a(ias)")]:
        """Tell hosts the new texts of rows they already show, also in an open menu."""
        return [[[number, _properties(row)] for number, row in changed.items()], []]

    @dbus_signal("ItemActivationRequested")
    def item_activation_requested(self, number: int, at: int) -> Annotated[list[int], DBusSignature("iu")]:
        """Stand in the interface; island never opens its menu by itself."""
        return [number, at]


def _properties(row: MenuRow) -> Properties:
    """Return a row's own properties."""
    if row.kind is RowKind.SEPARATOR:
        return {"type": Variant("s", "separator"), "visible": Variant("b", True)}
    return {
        "label": Variant("s", row.text.replace("_", "__")),  # one underscore would mark a shortcut key
        "enabled": Variant("b", row.enabled),
        "visible": Variant("b", True),
    }


def _unknown(number: int) -> DBusError:
    return DBusError("org.freedesktop.DBus.Error.InvalidArgs", f"no such row or property: {number}")
