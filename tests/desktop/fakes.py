"""The other side of both protocols: a tray host with its watcher, and a notification daemon."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from dbus_fast import Message, MessageType, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.annotations import DBusBool, DBusDict, DBusInt32, DBusSignature, DBusStr, DBusUInt32
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property, dbus_signal

Texts = Annotated[list[str], DBusSignature("as")]

ITEM = ("/StatusNotifierItem", "org.kde.StatusNotifierItem")
MENU = ("/MenuBar", "com.canonical.dbusmenu")
PROPERTIES = "org.freedesktop.DBus.Properties"


class Watcher(ServiceInterface):
    def __init__(self):
        super().__init__("org.kde.StatusNotifierWatcher")
        self.items = []
        self.has_host = True

    @dbus_method("RegisterStatusNotifierItem")
    def register(self, service: DBusStr) -> None:
        self.items.append(service)

    @dbus_property(PropertyAccess.READ, "IsStatusNotifierHostRegistered")
    def is_host_registered(self) -> DBusBool:
        return self.has_host

    @dbus_signal("StatusNotifierHostRegistered")
    def host_registered(self) -> None:
        pass


class Peer:
    """A program on the bus with one service."""

    def __init__(self, name, path, service):
        self.name, self.path, self.service = name, path, service
        self.bus = None

    async def start(self):
        self.bus = await MessageBus().connect()
        self.bus.export(self.path, self.service)
        await self.bus.request_name(self.name)

    async def __aenter__(self):
        await self.start()
        return self

    async def __aexit__(self, *_):
        await self.stop()

    async def stop(self):
        if self.bus.connected:
            self.bus.disconnect()
        with suppress(EOFError):  # the bus was killed
            await self.bus.wait_for_disconnect()

    async def call(self, destination, target, member, signature="", *body):
        path, interface = target
        reply = await self.bus.call(Message(
            destination=destination, path=path, interface=interface, member=member,
            signature=signature, body=list(body)))
        if reply.message_type is MessageType.ERROR:
            raise RuntimeError(f"{reply.error_name}: {reply.body}")
        return reply.body


class Host(Peer):
    """A tray host. `signals`: what items said, oldest first, as (moment, member, body)."""

    def __init__(self):
        super().__init__("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher", Watcher())
        self.signals = []

    async def start(self):
        self.service.items.clear()
        await super().start()
        self.bus.add_message_handler(self._hear)
        for _, interface in (ITEM, MENU):
            await self.call("org.freedesktop.DBus", ("/org/freedesktop/DBus", "org.freedesktop.DBus"),
                            "AddMatch", "s", f"type='signal',interface='{interface}'")

    def _hear(self, message):
        if message.message_type is MessageType.SIGNAL and message.interface in (ITEM[1], MENU[1]):
            self.signals.append((asyncio.get_running_loop().time(), message.member, message.body))

    @property
    def item(self):
        return self.service.items[-1] if self.service.items else None

    def heard(self, member):
        return [body for _, name, body in self.signals if name == member]

    async def properties(self, target=ITEM):
        (answer,) = await self.call(self.item, (target[0], PROPERTIES), "GetAll", "s", target[1])
        return {name: value.value for name, value in answer.items()}

    async def layout(self, names=(), within=0):
        """Return the rows of the menu, or those that one row opens, as (number, properties)."""
        _, root = await self.call(self.item, MENU, "GetLayout", "iias", within, -1, list(names))
        return [(row.value[0], plain(row.value[1])) for row in root[2]]

    async def labels(self):
        return [row.get("label", "-") for _, row in await self.layout()]

    async def number(self, label):
        return next(number for number, row in await self.layout() if row.get("label") == label)

    async def menu(self, member, signature="", *body):
        return await self.call(self.item, MENU, member, signature, *body)

    async def event(self, number, event):
        await self.menu("Event", "isvu", number, event, Variant("s", ""), 0)

    async def click(self, label):
        await self.event(await self.number(label), "clicked")


def plain(properties):
    return {name: value.value for name, value in properties.items()}


class NotificationService(ServiceInterface):
    def __init__(self, abilities):
        super().__init__("org.freedesktop.Notifications")
        self.abilities = list(abilities)
        self.server = "fake"
        self.live: dict[int, dict[str, Any]] = {}
        self.log = []
        self.count = 0

    @dbus_method("GetCapabilities")
    def get_capabilities(self) -> Texts:
        return self.abilities

    @dbus_method("GetServerInformation")
    def get_server_information(self) -> Annotated[list[str], DBusSignature("ssss")]:
        return [self.server, "island's tests", "1", "1.2"]

    @dbus_method("Notify")
    def notify(  # noqa: PLR0917
        self, app: DBusStr, replaces: DBusUInt32, icon: DBusStr, summary: DBusStr, body: DBusStr,
        actions: Texts, hints: DBusDict, timeout: DBusInt32,
    ) -> DBusUInt32:
        if replaces not in self.live:
            self.count += 1
        number = replaces if replaces in self.live else self.count
        self.live[number] = {"app": app, "summary": summary, "body": body, "actions": actions,
                             "hints": plain(hints), "replaces": replaces}
        self.log.append(("notify", number))
        return number

    @dbus_method("CloseNotification")
    def close(self, number: DBusUInt32) -> None:
        self.log.append(("close", number))
        if self.live.pop(number, None):
            self.closed(number, 3)

    @dbus_signal("NotificationClosed")
    def closed(self, number, reason) -> Annotated[list[int], DBusSignature("uu")]:
        return [number, reason]

    @dbus_signal("ActionInvoked")
    def invoked(self, number, action) -> Annotated[list[Any], DBusSignature("us")]:
        return [number, action]


class Daemon(Peer):
    """A notification daemon, and the user in front of it."""

    def __init__(self, *abilities):
        super().__init__("org.freedesktop.Notifications", "/org/freedesktop/Notifications",
                         NotificationService(abilities or ("body", "body-markup", "actions")))

    @property
    def live(self):
        return self.service.live

    @property
    def log(self):
        return self.service.log

    def act(self, number, action):
        self.service.invoked(number, action)
        self.dismiss(number)

    def dismiss(self, number):
        self.live.pop(number)
        self.service.closed(number, 2)
