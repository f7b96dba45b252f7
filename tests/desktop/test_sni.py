"""The icon against a fake host on a private bus."""

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from island.tray import dbusmenu, sni
from island.tray.base import Health, open_tray
from island.tray.entry import MenuRow, RowKind
from island.tray.face import Face
from island.tray.item import SIZES
from island.tray.menu import TrayModel

from .fakes import ITEM, MENU, Host
from .stage import eventually, play

pytestmark = pytest.mark.desktop

ROWS = (
    MenuRow("heading", "2 waiting", RowKind.HEADING, enabled=False),
    MenuRow("line:sessions", kind=RowKind.SEPARATOR, enabled=False),
    MenuRow("claude/s1", "◆ needs permission · web_shop · 3 min"),
    MenuRow("codex/s2", "✓ finished · docs · now"),
    MenuRow("quit", "Quit island", RowKind.ACTION),
)
MODEL = TrayModel(Face.YOUR_TURN, 2, "island: 2 waiting", ("web_shop <b> & co",), attention=True, rows=ROWS)


@asynccontextmanager
async def tray_with(model=MODEL):
    """A started tray, and the keys of what the user chose."""
    chosen = []
    tray = sni.SniTray(chosen.append)
    await tray.start()
    tray.apply(model)
    try:
        yield tray, chosen
    finally:
        await tray.stop()


@asynccontextmanager
async def shown(model=MODEL):
    """A tray in a host that has read it once."""
    async with Host() as host, tray_with(model) as (tray, chosen):
        await eventually(lambda: tray.health is Health.SHOWN)
        await fence(host)
        host.signals.clear()
        yield tray, chosen, host


async def fence(host):
    """Wait until everything the tray has sent so far is here: the bus keeps the order."""
    await host.properties()


def reworded(key, text):
    return replace(MODEL, rows=tuple(replace(row, text=text) if row.key == key else row for row in ROWS))


def with_rows(*keys):
    return replace(MODEL, rows=tuple(MenuRow(key, key) for key in keys))


@pytest.mark.usefixtures("bus")
@play
async def test_the_icon_registers_with_the_watcher_under_its_bus_name():
    async with shown() as (_, _, host):
        assert host.service.items == [host.item]
        assert host.item.startswith(f"org.kde.StatusNotifierItem-{os.getpid()}-")


@pytest.mark.usefixtures("bus")
@play
async def test_every_property_has_a_value():
    async with shown() as (_, _, host):
        properties = await host.properties()
        pixels = properties.pop("IconPixmap")
        assert properties.pop("AttentionIconPixmap") == pixels
        assert [(w, h, len(p)) for w, h, p in pixels] == [(size, size, 4 * size * size) for size in SIZES]
        assert list(properties.pop("ToolTip")) == ["", [], "island: 2 waiting", "web_shop &lt;b&gt; &amp; co"]
        assert properties == {
            "Category": "ApplicationStatus", "Id": "island", "Title": "island: 2 waiting",
            "Status": "NeedsAttention", "WindowId": 0, "IconThemePath": "", "IconName": "",
            "OverlayIconName": "", "OverlayIconPixmap": [], "AttentionIconName": "", "AttentionMovieName": "",
            "ItemIsMenu": True, "Menu": MENU[0], "XAyatanaLabel": "",
        }
        assert await host.properties(MENU) == {
            "Version": 3, "TextDirection": "ltr", "Status": "normal", "IconThemePath": [],
        }


@pytest.mark.usefixtures("bus")
@play
async def test_every_method_of_an_item_answers():
    async with shown() as (_, chosen, host):
        await host.call(host.item, ITEM, "ContextMenu", "ii", 1, 1)
        await host.call(host.item, ITEM, "SecondaryActivate", "ii", 1, 1)
        await host.call(host.item, ITEM, "Scroll", "is", 120, "vertical")
        await host.call(host.item, ITEM, "ProvideXdgActivationToken", "s", "token")
        assert chosen == []
        await host.call(host.item, ITEM, "Activate", "ii", 1, 1)
        await eventually(lambda: chosen == ["show"])


@pytest.mark.usefixtures("bus")
@play
async def test_the_menu_shows_the_rows_with_underscores_doubled():
    async with shown() as (_, _, host):
        assert [row for _, row in await host.layout()] == [
            {"label": "2 waiting", "enabled": False, "visible": True},
            {"type": "separator", "visible": True},
            {"label": "◆ needs permission · web__shop · 3 min", "enabled": True, "visible": True},
            {"label": "✓ finished · docs · now", "enabled": True, "visible": True},
            {"label": "Quit island", "enabled": True, "visible": True},
        ]
        assert (await host.layout(["label"]))[-1][1] == {"label": "Quit island"}


@pytest.mark.usefixtures("bus")
@play
async def test_a_click_names_its_row_and_a_disabled_row_has_none():
    async with shown() as (_, chosen, host):
        await host.click("2 waiting")
        await host.click("✓ finished · docs · now")
        await eventually(lambda: chosen == ["codex/s2"])


@pytest.mark.usefixtures("bus")
@play
async def test_every_method_of_the_menu_answers():
    async with shown() as (_, chosen, host):
        last = await host.number("Quit island")
        (root, _), *rest = (await host.menu("GetGroupProperties", "aias", [], []))[0]
        assert (root, len(rest)) == (0, len(ROWS))
        ((found, _),) = (await host.menu("GetGroupProperties", "aias", [last, 999], ["label"]))[0]
        assert found == last
        assert (await host.menu("GetProperty", "is", last, "label"))[0].value == "Quit island"
        with pytest.raises(RuntimeError, match="InvalidArgs"):
            await host.menu("GetProperty", "is", 999, "label")
        with pytest.raises(RuntimeError, match="InvalidArgs"):
            await host.menu("GetLayout", "iias", 999, -1, [])
        revision, (_, _, children) = await host.menu("GetLayout", "iias", 0, 0, [])
        assert revision > 1
        assert children == []
        assert await host.menu("AboutToShow", "i", 0) == [False]
        assert await host.menu("AboutToShowGroup", "ai", [0, last, 999]) == [[], [999]]
        click = dbusmenu.Variant("s", "")
        events = [[last, "clicked", click, 0], [999, "clicked", click, 0]]
        assert await host.menu("EventGroup", "a(isvu)", events) == [[999]]
        await eventually(lambda: chosen == ["quit"])


@pytest.mark.usefixtures("bus")
@play
async def test_a_new_text_changes_in_place():
    async with shown() as (tray, _, host):
        before = [number for number, _ in await host.layout()]
        tray.apply(reworded("codex/s2", "✓ 1 min"))
        ((changed, removed),) = await eventually(lambda: host.heard("ItemsPropertiesUpdated"))
        assert [(number, row["label"].value) for number, row in changed] == [(before[3], "✓ 1 min")]
        assert removed == []
        assert [number for number, _ in await host.layout()] == before
        assert host.heard("LayoutUpdated") == []


@pytest.mark.usefixtures("bus")
@play
async def test_rows_keep_their_numbers_when_others_come_and_go():
    async with shown(with_rows("a", "b", "c")) as (tray, _, host):
        before = dict(map(reversed, [(n, row["label"]) for n, row in await host.layout()]))
        tray.apply(with_rows("d", "c", "a"))
        await eventually(lambda: host.heard("LayoutUpdated"))
        after = {row["label"]: number for number, row in await host.layout()}
        assert list(after) == ["d", "c", "a"]
        assert (after["a"], after["c"]) == (before["a"], before["c"])
        assert after["d"] not in before.values()


@pytest.mark.usefixtures("bus")
@play
async def test_layouts_keep_their_pace_and_the_last_one_is_shown(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    monkeypatch.setattr(dbusmenu, "LAYOUT_GAP", 0.4)
    async with shown() as (tray, _, host):
        began = asyncio.get_running_loop().time()
        for number in range(60):
            tray.apply(with_rows(*map(str, range(number % 7 + 1)), f"last {number}"))
            await asyncio.sleep(0.03)
        await eventually(lambda: _last_label(host, "last 59"))
        passed = asyncio.get_running_loop().time() - began
        assert 1 <= len(host.heard("LayoutUpdated")) <= passed / dbusmenu.LAYOUT_GAP + 2


async def _last_label(host, label):
    return (await host.labels())[-1] == label


@pytest.mark.usefixtures("bus")
@play
async def test_icon_changes_keep_their_pace_and_the_last_one_is_shown():
    async with shown() as (tray, _, host):
        began = asyncio.get_running_loop().time()
        for number in range(40):
            tray.apply(replace(MODEL, face=(Face.WORKING, Face.DONE)[number % 2], title=f"island: {number}"))
            await asyncio.sleep(0.03)
        await eventually(lambda: _title(host, "island: 39"))
        passed = asyncio.get_running_loop().time() - began
        assert len(host.heard("NewTitle")) <= passed / sni.ICON_GAP + 2


async def _title(host, title):
    return (await host.properties())["Title"] == title


@pytest.mark.usefixtures("bus")
@play
async def test_the_first_change_does_not_wait(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 3600)
    async with Host() as host, tray_with() as (tray, _):
        await eventually(lambda: tray.health is Health.SHOWN)
        assert await host.labels() != []


@pytest.mark.usefixtures("bus")
@play
async def test_each_change_is_told_by_its_own_signal_and_nothing_else(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    async with shown() as (tray, _, host):
        changes = {
            ("NewIcon", "NewAttentionIcon"): replace(MODEL, face=Face.DONE),
            ("NewIcon", "NewAttentionIcon", "NewStatus"): replace(MODEL, face=Face.WORKING, attention=False),
            ("NewIcon", "NewAttentionIcon", "NewStatus", "XAyatanaNewLabel"): replace(MODEL, badge=11),
            ("XAyatanaNewLabel",): replace(MODEL, badge=12),  # "9+" as before
            ("NewTitle", "NewToolTip"): replace(MODEL, badge=12, title="island: 12 waiting"),
            ("NewToolTip",): replace(MODEL, badge=12, title="island: 12 waiting", lines=()),
        }
        for signals, model in changes.items():
            tray.apply(model)
            await eventually(lambda last=signals[-1]: host.heard(last))
            await fence(host)
            assert [name for _, name, _ in host.signals] == list(signals)
            host.signals.clear()
        tray.apply(replace(MODEL, badge=12, title="island: 12 waiting", lines=()))
        assert tray._pace._timer is None


@pytest.mark.usefixtures("bus")
@play
async def test_an_open_menu_keeps_its_rows_until_it_is_closed(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    monkeypatch.setattr(dbusmenu, "LAYOUT_GAP", 0.01)
    async with shown() as (tray, _, host):
        await host.event(0, "opened")
        tray.apply(with_rows("new"))
        await asyncio.sleep(0.3)  # thirty times the gap: time enough to do it wrong
        assert host.heard("LayoutUpdated") == []
        await host.event(0, "closed")
        await eventually(lambda: host.heard("LayoutUpdated"))
        assert await host.labels() == ["new"]


@pytest.mark.usefixtures("bus")
@play
async def test_a_menu_that_is_about_to_be_shown_is_open_until_a_row_of_it_is_clicked(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    monkeypatch.setattr(dbusmenu, "LAYOUT_GAP", 0.01)
    async with shown() as (tray, chosen, host):  # a host of GTK's says no more of it than this
        assert await host.menu("AboutToShow", "i", 0) == [False]
        tray.apply(with_rows("new"))
        await asyncio.sleep(0.3)
        assert host.heard("LayoutUpdated") == []
        await host.click("Quit island")
        await eventually(lambda: host.heard("LayoutUpdated"))
        assert (chosen, await host.labels()) == (["quit"], ["new"])


@pytest.mark.usefixtures("bus")
@play
async def test_no_new_tooltip_comes_over_an_open_menu(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    async with shown() as (tray, _, host):
        await host.event(0, "opened")
        tray.apply(replace(MODEL, face=Face.DONE, title="island: 3 waiting", lines=("docs",)))
        await eventually(lambda: host.heard("NewAttentionIcon"))
        await fence(host)
        assert (host.heard("NewTitle"), host.heard("NewToolTip")) == ([], [])
        assert await _title(host, MODEL.title)  # xfce reads all of an icon that says anything new
        await host.event(0, "closed")
        await eventually(lambda: host.heard("NewTitle") and host.heard("NewToolTip"))
        assert await _title(host, "island: 3 waiting")


@pytest.mark.usefixtures("bus")
@play
async def test_a_tooltip_does_not_wait_for_ever_for_a_menu_to_be_closed(monkeypatch):
    monkeypatch.setattr(dbusmenu, "LONGEST_HOLD", 0.2)
    async with shown() as (tray, _, host):
        await host.event(0, "opened")
        tray.apply(replace(MODEL, title="island: 3 waiting"))
        await eventually(lambda: host.heard("NewTitle"))


@pytest.mark.usefixtures("bus")
@play
async def test_a_menu_that_never_says_it_was_closed_is_not_held_for_ever(monkeypatch):
    monkeypatch.setattr(dbusmenu, "LONGEST_HOLD", 0.2)
    async with shown() as (tray, _, host):
        await host.event(0, "opened")
        tray.apply(with_rows("new"))
        await eventually(lambda: host.heard("LayoutUpdated"))
        assert await host.labels() == ["new"]


@pytest.mark.usefixtures("bus")
@play
async def test_a_menu_about_to_be_shown_is_brought_up_to_date_first(monkeypatch):
    monkeypatch.setattr(dbusmenu, "LAYOUT_GAP", 3600)
    async with shown() as (tray, _, host):
        tray.apply(with_rows("new"))
        await eventually(lambda: tray._menu._layout._timer)
        assert await host.menu("AboutToShow", "i", 0) == [True]
        assert await host.labels() == ["new"]
        assert await host.menu("AboutToShow", "i", 0) == [False]


@pytest.mark.usefixtures("bus")
@play
async def test_a_late_click_hits_the_row_that_has_just_gone():
    async with shown() as (tray, chosen, host):
        number = await host.number("✓ finished · docs · now")
        tray.apply(with_rows("new"))
        await eventually(lambda: host.heard("LayoutUpdated"))
        await host.event(number, "clicked")
        await eventually(lambda: chosen == ["codex/s2"])


@pytest.mark.usefixtures("bus")
@play
async def test_a_tray_that_appears_later_is_taken_up_and_so_is_the_next_one():
    async with tray_with() as (tray, _):
        await eventually(lambda: tray.health is Health.WAITING_FOR_HOST)
        for _ in range(3):
            async with Host() as host:
                await eventually(lambda: tray.health is Health.SHOWN)
                assert await host.labels() != []
            await eventually(lambda: tray.health is Health.WAITING_FOR_HOST)


@pytest.mark.usefixtures("bus")
@play
async def test_a_watcher_without_a_host_shows_nothing():
    host = Host()
    host.service.has_host = False
    async with host, tray_with() as (tray, _):
        await eventually(lambda: host.item and tray.health is Health.WAITING_FOR_HOST)
        host.service.has_host = True
        host.service.host_registered()
        await eventually(lambda: tray.health is Health.SHOWN)


@pytest.mark.usefixtures("bus")
@play
async def test_a_watcher_that_answers_late_is_asked_again(monkeypatch):
    monkeypatch.setattr(sni, "RETRY", 0.05)
    host = Host()
    host.path = "/not/yet"
    async with host, tray_with() as (tray, _):
        await eventually(lambda: tray.health is Health.WAITING_FOR_HOST)
        host.bus.unexport("/not/yet")
        host.bus.export("/StatusNotifierWatcher", host.service)
        await eventually(lambda: tray.health is Health.SHOWN)


@play
async def test_the_bus_is_killed_and_comes_back(bus):
    async with tray_with() as (tray, chosen):
        for _ in range(2):
            async with Host() as host:
                await eventually(lambda: tray.health is Health.SHOWN)
                await host.click("Quit island")
                await eventually(lambda: chosen.pop(0) if chosen else None)
                bus.kill()
            await eventually(lambda: tray.health is Health.NO_BUS)
            tray.apply(reworded("codex/s2", "changed while away"))
            bus.start()
        async with Host() as host:
            await eventually(lambda: tray.health is Health.SHOWN)
            assert "changed while away" in await host.labels()


@play
async def test_a_bus_that_appears_later_is_taken_up(bus):
    bus.kill()
    async with tray_with() as (tray, _):
        await asyncio.sleep(0)
        assert tray.health is Health.NO_BUS
        bus.start()
        async with Host():
            await eventually(lambda: tray.health is Health.SHOWN)


@pytest.mark.usefixtures("bus")
@play
async def test_stop_leaves_the_bus():
    async with shown() as (tray, _, host):
        name = host.item
        await tray.stop()
        driver = ("/org/freedesktop/DBus", "org.freedesktop.DBus")
        assert await host.call("org.freedesktop.DBus", driver, "NameHasOwner", "s", name) == [False]
        assert tray.health is Health.NO_BUS


@pytest.mark.usefixtures("bus")
def test_open_tray_runs_the_work_to_its_end():
    tray = open_tray(print)

    async def work():
        await tray.start()
        tray.apply(MODEL)
        await tray.stop()
        return 7

    assert isinstance(tray, sni.SniTray)
    assert tray.run(work) == 7


# -- what a row opens ---------------------------------------------------------------------------------------

OPENING = replace(MODEL, rows=(
    MenuRow("claude/s1", "one", rows=(MenuRow("jump:claude/s1", "Jump"), MenuRow("sure", "Told"))),
    MenuRow("codex/s2", "two", rows=(MenuRow("jump:codex/s2", "Jump"), MenuRow("sure", "Told"))),
))


def opening(**texts):
    """Return the same menu with other texts of the rows that `codex/s2` opens."""
    one, two = OPENING.rows
    return replace(OPENING, rows=(one, replace(two, rows=tuple(
        replace(r, text=texts.get(r.key, r.text)) for r in two.rows))))


@pytest.mark.usefixtures("bus")
@play
async def test_a_row_that_opens_others_is_a_submenu():
    async with shown(OPENING) as (_, chosen, host):
        (first, row), (second, _) = await host.layout()
        assert row == {"label": "one", "enabled": True, "visible": True, "children-display": "submenu"}
        assert await host.layout(["children-display"]) == [
            (first, {"children-display": "submenu"}), (second, {"children-display": "submenu"})]
        within = await host.layout(within=second)
        assert [row["label"] for _, row in within] == ["Jump", "Told"]
        assert (await host.menu("GetProperty", "is", first, "children-display"))[0].value == "submenu"
        _, (_, _, children) = await host.menu("GetLayout", "iias", 0, 1, [])
        assert [row.value[2] for row in children] == [[], []]
        assert len((await host.menu("GetGroupProperties", "aias", [], []))[0]) == 7
        assert await host.menu("AboutToShow", "i", second) == [False]
        await host.event(within[0][0], "clicked")
        await eventually(lambda: chosen == ["jump:codex/s2"])


@pytest.mark.usefixtures("bus")
@play
async def test_a_new_text_of_an_inner_row_changes_in_place(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    monkeypatch.setattr(dbusmenu, "TEXT_GAP", 0.01)
    async with shown(OPENING) as (tray, _, host):
        (_, _), (second, _) = await host.layout()
        inner = (await host.layout(within=second))[1][0]
        await host.event(0, "opened")
        tray.apply(opening(sure="Inferred"))
        ((changed, _),) = await eventually(lambda: host.heard("ItemsPropertiesUpdated"))
        assert [(number, row["label"].value) for number, row in changed] == [(inner, "Inferred")]
        assert host.heard("LayoutUpdated") == []


@pytest.mark.usefixtures("bus")
@play
async def test_who_goes_into_a_submenu_still_looks_at_the_menu(monkeypatch):
    monkeypatch.setattr(sni, "ICON_GAP", 0.01)
    monkeypatch.setattr(dbusmenu, "LAYOUT_GAP", 0.01)
    async with shown(OPENING) as (tray, _, host):
        (first, _), _ = await host.layout()
        await host.event(first, "opened")
        tray.apply(with_rows("new"))
        await asyncio.sleep(0.3)
        await host.event(first, "closed")  # the menu that it opened from is still there
        assert host.heard("LayoutUpdated") == []
        await host.event(0, "closed")
        await eventually(lambda: host.heard("LayoutUpdated"))


@pytest.mark.usefixtures("bus")
@play
async def test_texts_change_at_most_once_a_second_and_the_last_is_shown():
    async with shown(OPENING) as (tray, _, host):
        began = asyncio.get_running_loop().time()
        for number in range(60):
            tray.apply(opening(sure=f"now {number}"))
            await asyncio.sleep(0.03)
        await eventually(lambda: _inner_text(host, "now 59"))
        passed = asyncio.get_running_loop().time() - began
        assert 1 <= len(host.heard("ItemsPropertiesUpdated")) <= passed / dbusmenu.TEXT_GAP + 2


async def _inner_text(host, text):
    told = [row["label"].value for changed, _ in host.heard("ItemsPropertiesUpdated") for _, row in changed]
    return told[-1:] == [text]
