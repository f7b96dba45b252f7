"""The session bus: found, connected, and connected again. Must not know what is said over it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusFastError

log = logging.getLogger(__name__)

Serve = Callable[[MessageBus], Coroutine[Any, Any, None]]

TIMEOUT = 5.0  # a bus that does not let us in answers nothing at all, not even the greeting
FIRST_DELAY, LONGEST_DELAY = 0.25, 15.0


class BusError(Exception):
    """The bus, or the peer that was called, is not there, refused or kept silent. `name`: D-Bus's own."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True, slots=True)
class Peer:
    """An interface of an object of a service."""

    name: str
    path: str
    interface: str


BUS = Peer("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")


def address() -> str:
    """Return where the session bus listens. dbus-fast itself does not know the second place."""
    given = os.environ.get("DBUS_SESSION_BUS_ADDRESS")
    if given:
        return given
    folder = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{_user()}"
    return f"unix:path={quote(folder).replace('~', '%7E')}/bus"


def _user() -> int:
    if sys.platform == "win32":
        return 0  # there is no session bus there
    return os.getuid()


async def connect() -> MessageBus:
    """Return a connection to the session bus."""
    try:
        async with asyncio.timeout(TIMEOUT):
            bus = await MessageBus(bus_address=address()).connect()
    except (OSError, EOFError, ValueError, DBusFastError) as error:
        raise BusError(f"no session bus: {_why(error)}") from error
    writer: Any = bus._writer  # noqa: SLF001 - there is no other way in
    writer.sock = _PatientSocket(writer.sock)
    return bus


class _PatientSocket:
    """A socket that takes nothing while it is full, where dbus-fast takes an error for the end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, piece: bytes) -> int:
        """Send what there is room for."""
        try:
            return self._sock.send(piece)
        except BlockingIOError:
            return 0


async def keep(serve: Serve) -> None:
    """Serve the session bus for ever: connect, serve until the connection is lost, wait, and again."""
    clock = asyncio.get_running_loop().time
    delay, said = FIRST_DELAY, ""
    while True:
        began = clock()
        try:
            await _serve_once(serve)
        except BusError as error:
            if str(error) != said:  # once for as long as it stays the same
                said = str(error)
                log.info("%s", said)
        except Exception:
            log.exception("D-Bus service failed; it starts again")
        if clock() - began > LONGEST_DELAY:
            delay, said = FIRST_DELAY, ""
        await asyncio.sleep(delay)
        delay = min(delay * 2, LONGEST_DELAY)


async def _serve_once(serve: Serve) -> None:
    """Serve one connection; always ends with an error, which says why it ended."""
    bus = await connect()
    work = asyncio.create_task(serve(bus))
    end = asyncio.create_task(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]
    try:
        await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        work.cancel()
        bus.disconnect()
        await asyncio.wait({work, end}, timeout=1)  # the socket is closed on the way
    if not work.cancelled() and (error := work.exception()):
        raise error
    if end.done() and (error := end.exception()):
        raise BusError(f"session bus lost: {_why(error)}")
    raise BusError("session bus left")


async def call(bus: MessageBus, peer: Peer, member: str, signature: str = "", *body: Any) -> list[Any]:
    """Call a method and return its answer; raises BusError only."""
    if not bus.connected:  # dbus-fast would write to a closed descriptor, by then perhaps another file's
        raise BusError("session bus lost")
    message = Message(destination=peer.name, path=peer.path, interface=peer.interface, member=member,
                      signature=signature, body=list(body))
    try:
        async with asyncio.timeout(TIMEOUT):
            reply = cast("Message | None", await bus.call(message))
    except (OSError, EOFError, ValueError, DBusFastError) as error:
        raise BusError(f"{peer.name} {member}: {_why(error)}") from error
    if reply is None:  # we left the bus meanwhile
        raise BusError("session bus left")
    if reply.message_type is MessageType.ERROR:
        text = reply.body[0] if reply.body else reply.error_name
        raise BusError(f"{peer.name} {member}: {text}", reply.error_name or "")
    return reply.body


def ask(peer: Peer, member: str, signature: str = "", *body: Any) -> list[Any]:
    """Call a method once, on a connection of its own, outside any event loop; raises BusError only."""

    async def once() -> list[Any]:
        bus = await connect()
        try:
            return await call(bus, peer, member, signature, *body)
        finally:
            bus.disconnect()
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(1):  # the socket is closed on the way
                    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]

    return asyncio.run(once())


async def listen(bus: MessageBus, peer: Peer, member: str, heard: Callable[[Message], None],
                 argument: str = "") -> None:
    """Have `heard` called with each signal `member` of `peer`, or with those that begin with `argument`."""
    rule = {"type": "signal", "sender": peer.name, "path": peer.path, "interface": peer.interface,
            "member": member} | ({"arg0": argument} if argument else {})
    await call(bus, BUS, "AddMatch", "s", ",".join(f"{key}='{value}'" for key, value in rule.items()))

    def hear(message: Message) -> None:
        if ((message.message_type, message.path, message.interface, message.member)
                == (MessageType.SIGNAL, peer.path, peer.interface, member)
                and (not argument or message.body[0] == argument)):
            heard(message)

    bus.add_message_handler(hear)


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def owner(bus: MessageBus, name: str) -> str:
    """Return the connection that owns `name`, or an empty text."""
    try:
        return str((await call(bus, BUS, "GetNameOwner", "s", name))[0])
    except BusError as error:
        if error.name == "org.freedesktop.DBus.Error.NameHasNoOwner":
            return ""
        raise
