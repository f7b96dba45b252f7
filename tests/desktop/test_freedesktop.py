"""Notices against a fake daemon on a private bus."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from island.desktop import bus as session_bus
from island.desktop.freedesktop import FreedesktopNotifier
from island.desktop.notify import WORD, Health, open_notifier
from island.manner import Sound, Urgency
from island.model import Reason
from island.notices import Notice

from .fakes import Daemon
from .stage import eventually, play

pytestmark = pytest.mark.desktop

NOTICE = Notice("claude/s1", "claude", "s1", Reason.PERMISSION, "claude needs permission", "web_shop")


@asynccontextmanager
async def notifier():
    """A started notifier, and what the user chose."""
    chosen = []
    notices = FreedesktopNotifier(lambda *choice: chosen.append(choice))
    await notices.start()
    try:
        yield notices, chosen
    finally:
        await notices.stop()


@asynccontextmanager
async def ready(*abilities):
    """A notifier that has found its daemon."""
    async with Daemon(*abilities) as daemon, notifier() as (notices, chosen):
        await eventually(lambda: notices.health is Health.READY)
        yield notices, chosen, daemon


@pytest.mark.usefixtures("bus")
@play
async def test_a_notice_is_shown_with_its_buttons_hints_and_picture():
    async with ready() as (notices, _, daemon):
        await notices.show(NOTICE)
        shown = daemon.live[1]
        width, height, stride, alpha, bits, channels, pixels = shown["hints"].pop("image-data")
        assert (width, height, stride, alpha, bits, channels) == (48, 48, 192, True, 8, 4)
        assert len(pixels) == height * stride
        assert shown == {
            "app": "island", "summary": "claude needs permission", "body": "web_shop", "replaces": 0,
            "actions": ["default", "Show", "mute", "Mute"],
            "hints": {"desktop-entry": "island", "category": "im.received", "urgency": 1,
                      "suppress-sound": True},
        }


@pytest.mark.usefixtures("bus")
@play
async def test_urgency_and_sound_are_told_in_the_words_of_the_daemon():
    async with ready() as (notices, _, daemon):
        await notices.show(replace(NOTICE, urgency=Urgency.CRITICAL, sound=Sound.ASK))
        hints = daemon.live[1]["hints"]
        assert (hints["urgency"], hints["sound-name"], "suppress-sound" in hints) == (2, "dialog-question", False)
        await notices.show(replace(NOTICE, urgency=Urgency.LOW))
        assert (daemon.live[1]["hints"]["urgency"], daemon.live[1]["hints"]["suppress-sound"]) == (0, True)


@pytest.mark.usefixtures("bus")
@play
async def test_a_notice_with_the_same_key_takes_the_place_of_the_first():
    async with ready() as (notices, _, daemon):
        await notices.show(NOTICE)
        await notices.show(replace(NOTICE, body="another"))
        await notices.show(replace(NOTICE, key="claude/s2"))
        assert {n: notice["body"] for n, notice in daemon.live.items()} == {1: "another", 2: "web_shop"}


@pytest.mark.usefixtures("bus")
@play
async def test_the_same_notice_is_not_sent_twice():
    async with ready() as (notices, _, daemon):
        await notices.show(NOTICE)
        await notices.show(NOTICE)
        assert daemon.log == [("notify", 1)]


@pytest.mark.usefixtures("bus")
@play
async def test_a_notice_is_withdrawn_once_and_an_unknown_one_not_at_all():
    async with ready() as (notices, _, daemon):
        await notices.show(NOTICE)
        await notices.withdraw(NOTICE.key)
        await notices.withdraw(NOTICE.key)
        await notices.withdraw("nobody/knows")
        assert daemon.log == [("notify", 1), ("close", 1)]
        await notices.show(NOTICE)
        assert list(daemon.live) == [2]


@pytest.mark.usefixtures("bus")
@play
async def test_a_notice_that_the_user_closed_is_shown_anew_and_not_closed_again():
    async with ready() as (notices, chosen, daemon):
        await notices.show(NOTICE)
        daemon.dismiss(1)
        await eventually(lambda: not notices._live)
        await notices.withdraw(NOTICE.key)
        assert daemon.log == [("notify", 1)]
        await notices.show(NOTICE)
        assert daemon.live[2]["replaces"] == 0
        assert chosen == []


@pytest.mark.usefixtures("bus")
@play
async def test_a_click_names_the_notice_and_asks_to_show_it():
    async with ready() as (notices, chosen, daemon):
        await notices.show(replace(NOTICE, key="codex/s9"))
        await notices.show(NOTICE)
        daemon.act(2, "default")
        await eventually(lambda: chosen == [("claude/s1", "show")])
        assert list(notices._live) == ["codex/s9"]


@pytest.mark.usefixtures("bus")
@play
async def test_a_button_names_its_action():
    async with ready() as (notices, chosen, daemon):
        await notices.show(NOTICE)
        daemon.act(1, "mute")
        await eventually(lambda: chosen == [("claude/s1", "mute")])


@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize(("name", "sessions", "key", "actions"), [
    ("Xfce Notify Daemon", ("s1",), "claude/s1", ["default", "Show", "mute", "Mute"]),
    ("dunst", ("s1",), "claude/s1", ["default", "Show", "show", "Show", "mute", "Mute"]),
    ("Plasma", ("s1", "s2"), "island/many:s1", ["default", "Show", "show", "Show"]),
    ("Plasma", (), WORD, []),
])
@play
async def test_buttons_are_those_that_the_daemon_and_the_notice_have_room_for(name, sessions, key, actions):
    async with Daemon() as daemon, notifier() as (notices, _):
        daemon.service.server = name
        await eventually(lambda: notices.health is Health.READY)
        notices._abilities = None  # it may have asked before it had its name
        await notices.show(replace(NOTICE, key=key, sessions=sessions))
        assert daemon.live[1]["actions"] == actions


@pytest.mark.usefixtures("bus")
@play
async def test_a_daemon_that_shows_titles_only_gets_the_first_line_in_it():
    async with ready("actions") as (notices, _, daemon):
        await notices.show(replace(NOTICE, body="web_shop\nmore"))
        await notices.show(replace(NOTICE, key="claude/s2", body=""))
        assert [n["summary"] for n in daemon.live.values()] == [
            "claude needs permission: web_shop", "claude needs permission"]


@pytest.mark.usefixtures("bus")
@play
async def test_another_programs_notice_is_none_of_our_business():
    async with ready() as (notices, chosen, daemon):
        await notices.show(NOTICE)
        daemon.service.invoked(77, "default")
        daemon.service.closed(77, 2)
        daemon.act(1, "default")
        await eventually(lambda: chosen)
        assert chosen == [("claude/s1", "show")]


@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize(("abilities", "body"), [
    (("body", "body-markup"), "&lt;b&gt;a &amp; b&lt;/b&gt;\nsecond line"),
    (("body",), "\u2039b>a & b\u2039/b>\nsecond line"),  # the daemon may read markup and not say so
])
@play
async def test_markup_is_escaped_only_where_it_is_read(abilities, body):
    async with ready(*abilities) as (notices, _, daemon):
        await notices.show(replace(NOTICE, title="<i>", body="\n<b>a & b</b>\u202e\x00\nsecond line"))
        assert (daemon.live[1]["summary"], daemon.live[1]["body"]) == ("<i>", body)
        assert daemon.live[1]["actions"] == []


@pytest.mark.usefixtures("bus")
@play
async def test_long_and_broken_texts_are_cut_and_shown():
    async with ready() as (notices, _, daemon):
        await notices.show(replace(NOTICE, title="t" * 500, body="b\udc80" * 500))
        assert (len(daemon.live[1]["summary"]), len(daemon.live[1]["body"])) == (80, 200)


@pytest.mark.usefixtures("bus")
@play
async def test_no_daemon_is_said_and_harms_nothing():
    async with notifier() as (notices, _):
        await eventually(lambda: notices.health is Health.NO_DAEMON)
        await notices.show(NOTICE)
        await notices.withdraw(NOTICE.key)
        async with Daemon() as daemon:
            await eventually(lambda: notices.health is Health.READY)
            await notices.show(NOTICE)
            assert list(daemon.live) == [1]


@pytest.mark.usefixtures("bus")
@play
async def test_a_new_daemon_is_asked_what_it_can_and_has_none_of_our_notices():
    async with notifier() as (notices, _):
        async with Daemon("body-markup"):
            await eventually(lambda: notices.health is Health.READY)
            await notices.show(NOTICE)
        await eventually(lambda: notices.health is Health.NO_DAEMON)
        async with Daemon("body") as second:
            await eventually(lambda: notices.health is Health.READY)
            await notices.withdraw(NOTICE.key)
            await notices.show(replace(NOTICE, body="a & b"))
            assert second.log == [("notify", 1)]
            assert second.live[1]["body"] == "a & b"


@play
async def test_the_bus_is_killed_and_comes_back(bus):
    async with notifier() as (notices, _):
        for _ in range(2):
            async with Daemon() as daemon:
                await eventually(lambda: notices.health is Health.READY)
                await notices.show(NOTICE)
                assert list(daemon.live) == [1]
                bus.kill()
            await eventually(lambda: notices.health is Health.NO_BUS)
            await notices.show(NOTICE)
            await notices.withdraw(NOTICE.key)
            bus.start()


@pytest.mark.usefixtures("bus")
@play
async def test_a_daemon_that_never_answers_is_given_up(monkeypatch):
    async with ready() as (notices, _, daemon):
        monkeypatch.setattr(session_bus, "TIMEOUT", 0.1)
        daemon.bus.add_message_handler(lambda message: message.member == "Notify")
        await notices.show(NOTICE)
        assert notices._live == {}


@pytest.mark.usefixtures("bus")
@play
async def test_stop_takes_all_notices_away():
    async with ready() as (notices, _, daemon):
        for number in range(3):
            await notices.show(replace(NOTICE, key=f"claude/{number}"))
        await notices.stop()
        assert daemon.live == {}
        await notices.show(NOTICE)
        assert daemon.live == {}


@pytest.mark.usefixtures("bus")
@play
async def test_open_notifier_takes_the_freedesktop_one():
    notices = open_notifier(print)
    assert isinstance(notices, FreedesktopNotifier)
    await notices.stop()


@pytest.mark.usefixtures("bus")
@play
async def test_a_notice_waits_for_a_daemon_that_comes_later():
    async with notifier() as (notices, _):
        await eventually(lambda: notices.health is Health.NO_DAEMON)
        await notices.show(NOTICE)
        await notices.show(replace(NOTICE, key="codex/s9"))
        await notices.withdraw("codex/s9")
        async with Daemon() as daemon:
            await eventually(lambda: [n["summary"] for n in daemon.live.values()] == [NOTICE.title])
