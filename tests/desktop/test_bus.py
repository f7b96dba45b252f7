"""The session bus: where it is, and what happens when it is not there."""

import asyncio
import os
import socket

import pytest
from dbus_fast import Message

from island.desktop import bus as session_bus
from island.desktop.bus import BUS, BusError, Peer, address, call, connect, keep, listen

from .stage import eventually, play

pytestmark = pytest.mark.desktop


def test_the_address_is_the_given_one_or_lies_in_the_runtime_folder(monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/here")
    assert address() == "unix:path=/here"
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/a b~c")
    assert address() == "unix:path=/run/a%20b%7Ec/bus"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert address() == f"unix:path=/run/user/{os.getuid()}/bus"


@play
async def test_the_runtime_folder_is_enough(bus, monkeypatch):
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(bus.socket.parent))
    connection = await connect()
    assert await call(connection, BUS, "NameHasOwner", "s", connection.unique_name) == [True]
    connection.disconnect()
    await connection.wait_for_disconnect()


@pytest.mark.parametrize("given", ["unix:path=/nowhere/bus", "disabled:", "nonsense", "unix:path=/a b"])
@play
async def test_no_bus_is_one_kind_of_error(given, monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", given)
    with pytest.raises(BusError):
        await connect()


@play
async def test_a_bus_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(session_bus, "TIMEOUT", 0.1)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/silent")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{tmp_path}/silent")
        silent.listen()
        with pytest.raises(BusError):
            await connect()


@pytest.mark.usefixtures("bus")
@play
async def test_calls_fail_by_name_and_after_the_bus_at_once():
    connection = await connect()
    with pytest.raises(BusError) as error:
        await call(connection, Peer("org.nobody", "/", "org.nobody"), "Nothing")
    assert error.value.name == "org.freedesktop.DBus.Error.ServiceUnknown"
    with pytest.raises(BusError):
        await call(connection, BUS, "NameHasOwner", "u", "not a number")
    connection.disconnect()
    await connection.wait_for_disconnect()
    with pytest.raises(BusError):
        await call(connection, BUS, "ListNames")


@pytest.mark.usefixtures("bus")
@play
async def test_only_the_wanted_signal_is_heard():
    connection, heard = await connect(), []
    peer = Peer(connection.unique_name, "/here", "org.island.Test")
    await listen(connection, peer, "Wanted", lambda message: heard.append(message.body), "mine")
    for path, member, body in (("/here", "Other", ["mine"]), ("/there", "Wanted", ["mine"]),
                               ("/here", "Wanted", ["yours"]), ("/here", "Wanted", ["mine"])):
        await connection.send(Message.new_signal(path, peer.interface, member, "s", body))
    await eventually(lambda: heard)
    assert heard == [["mine"]]
    connection.disconnect()
    await connection.wait_for_disconnect()


@play
async def test_a_bus_that_is_slow_is_waited_for(bus):
    connection = await connect()
    bus.pause()
    big = "x" * 50_000
    for _ in range(40):  # more than a socket holds
        connection.send(Message.new_signal("/here", "org.island.Test", "Big", "s", [big]))
    bus.resume()
    assert await call(connection, BUS, "NameHasOwner", "s", connection.unique_name) == [True]
    connection.disconnect()
    await connection.wait_for_disconnect()


@pytest.mark.usefixtures("bus")
@play
async def test_a_service_that_fails_starts_again_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(session_bus, "FIRST_DELAY", 0.01)
    served = []

    async def serve(bus):
        served.append(bus.unique_name)
        raise ZeroDivisionError

    keeping = asyncio.create_task(keep(serve))
    await eventually(lambda: len(served) > 2)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert "ZeroDivisionError" in caplog.text


@play
async def test_a_lost_bus_is_reported_once_and_costs_no_descriptors(bus, monkeypatch, caplog):
    monkeypatch.setattr(session_bus, "LONGEST_DELAY", 0.01)
    caplog.set_level("INFO", "island")
    tries = []
    real = session_bus.connect

    async def counted():
        tries.append(1)
        return await real()

    monkeypatch.setattr(session_bus, "connect", counted)
    bus.kill()
    keeping = asyncio.create_task(keep(lambda _: asyncio.sleep(3600)))
    await eventually(lambda: len(tries) > 5)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    await eventually(lambda: len(tries) > 50)
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
    keeping.cancel()
    await asyncio.wait([keeping])
    assert len([record for record in caplog.records if record.name == "island.desktop.bus"]) == 1
