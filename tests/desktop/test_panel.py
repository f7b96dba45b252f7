"""Icon, menu and notices on a real desktop: what a user would see and click."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from island.desktop.freedesktop import FreedesktopNotifier
from island.desktop.notify import Health as NoticeHealth
from island.model import Reason, Row, Snapshot, State, Verdict
from island.notices import Notice
from island.tray import icon
from island.tray.base import Health
from island.tray.face import Face
from island.tray.menu import TrayModel, model
from island.tray.sni import SniTray

from .desk import FIRST_ROW, ICON, ROW, Desk
from .stage import eventually, play

pytestmark = pytest.mark.desktop

HEADING = (80, FIRST_ROW)
FIRST, SECOND = (80, FIRST_ROW + ROW + 1), (80, FIRST_ROW + 2 * ROW + 1)  # below the heading and a line

NOW = 2_000_000_000.0
SNAPSHOT = Snapshot(NOW, State.YOUR_TURN, (
    Row("claude", "s1", Verdict(State.YOUR_TURN, Reason.PERMISSION, since=NOW - 190), project="web_shop"),
    Row("codex", "s2", Verdict(State.YOUR_TURN, Reason.FINISHED, since=NOW - 60), project="docs"),
    Row("gemini", "s3", Verdict(State.WORKING, Reason.TOOL, since=NOW - 5), project="<b>till</b> & co"),
))
NOTICE = Notice("claude/s1", "claude", "s1", Reason.PERMISSION, "claude needs permission", "web_shop")


def ink(colour):
    return bytes(colour[:3]).hex()


@pytest.fixture(scope="module")
def _desk(tmp_path_factory):
    with Desk(tmp_path_factory.mktemp("desk")) as desk:
        yield desk


@pytest.fixture
def desk(_desk, monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", _desk.bus.address)
    yield _desk
    _desk.point(900, 500)


@asynccontextmanager
async def tray():
    chosen = []
    shown = SniTray(chosen.append)
    await shown.start()
    try:
        await eventually(lambda: shown.health is Health.SHOWN)
        yield shown, chosen
    finally:
        await shown.stop()


async def see(desk, face):
    """Wait until the icon has the face's colour, and nothing of another's."""
    colour = ink(icon.LOOKS[face].ink)
    await eventually(lambda: asyncio.to_thread(lambda: colour in desk.colours(24, 24, 4, 3)))


@play
async def test_the_icon_shows_each_face_in_its_colour(desk):
    async with tray() as (shown, _):
        for face in Face:
            shown.apply(TrayModel(face=face))
            await see(desk, face)


@play
async def test_a_menu_row_is_clicked_and_named(desk):
    async with tray() as (shown, chosen):
        shown.apply(model(SNAPSHOT, NOW))
        await see(desk, Face.YOUR_TURN)
        await open_menu(desk)
        await asyncio.to_thread(desk.press, "Down", "Down", "Right", "Down", "Return")
        await eventually(lambda: chosen == ["seen:codex/s2"])
        await eventually(lambda: asyncio.to_thread(lambda: not menu_is_open(desk)))


@play
async def test_an_open_menu_stays_open_while_its_texts_change(desk):
    async with tray() as (shown, chosen):
        shown.apply(model(SNAPSHOT, NOW))
        await see(desk, Face.YOUR_TURN)
        await open_menu(desk)
        before = await asyncio.to_thread(submenu, desk)
        await asyncio.to_thread(desk.press, "Down", "Right")  # what the first row opens, with its first action chosen
        await eventually(lambda: asyncio.to_thread(lambda: submenu(desk) != before))
        for minute in range(1, 5):
            shown.apply(model(SNAPSHOT, NOW + 60 * minute))
            await asyncio.sleep(1.1)
            assert await asyncio.to_thread(lambda: menu_is_open(desk) and submenu(desk) != before)
        await asyncio.to_thread(desk.press, "Return")
        await eventually(lambda: chosen == ["jump:claude/s1"])


@play
async def test_the_icon_comes_back_with_the_panel(desk):
    async with tray() as (shown, _):
        shown.apply(model(SNAPSHOT, NOW))
        await see(desk, Face.YOUR_TURN)
        await asyncio.to_thread(desk.kill_panel)
        await eventually(lambda: shown.health is Health.WAITING_FOR_HOST)
        shown.apply(TrayModel(Face.DONE))
        await asyncio.to_thread(desk.start_panel)
        await see(desk, Face.DONE)


@play
async def test_a_notice_is_shown_replaced_clicked_and_withdrawn(desk):
    chosen = []
    notices = FreedesktopNotifier(lambda *choice: chosen.append(choice))
    await notices.start()
    await eventually(lambda: notices.health is NoticeHealth.READY)
    await notices.show(NOTICE)
    await bubbles(desk, 1)
    await notices.withdraw(NOTICE.key)
    await bubbles(desk, 0)
    await notices.show(NOTICE)
    await bubbles(desk, 1)
    await asyncio.to_thread(desk.click, 900, 70, 2)  # dunst acts on the middle button
    await eventually(lambda: chosen == [("claude/s1", "show")])
    await bubbles(desk, 0)
    await asyncio.to_thread(desk.kill_dunst)
    await asyncio.to_thread(desk.start_dunst)
    await eventually(lambda: notices.health is NoticeHealth.READY)
    await notices.show(NOTICE)
    await bubbles(desk, 1)
    await notices.stop()
    await bubbles(desk, 0)


async def bubbles(desk, count):
    await eventually(lambda: asyncio.to_thread(lambda: desk.windows("dunst") == count))


async def open_menu(desk):
    await asyncio.to_thread(desk.click, *ICON)
    await eventually(lambda: asyncio.to_thread(menu_is_open, desk))
    await asyncio.to_thread(desk.point, *HEADING)


def submenu(desk):
    return desk.colours(400, 100, 300, FIRST_ROW + 2 * ROW)


def menu_is_open(desk):
    return desk.pixel(2, FIRST_ROW) != "000000"  # the screen behind it is black
