import asyncio

from island.agents import AGENTS
from island.attention import CALM, GLANCE, YOUNG, Attention
from island.model import Event, Kind
from island.sessions import Sessions

NOW = 1_796_000_000.0
CODEX = AGENTS["codex"]


def sessions(*idents, role="person"):
    """Sessions whose turn is over, each with a process: 1, 2 and so on."""
    held = Sessions({"codex": CODEX}, NOW - 100)
    for pid, ident in enumerate(idents, 1):
        for event in (
            Event(Kind.OWNER, ident, NOW - 9, str(pid), number=NOW - 9), Event(Kind.FACT, ident, NOW, "role", role),
            Event(Kind.PROMPT, ident, NOW - 5, word="user", turn="t"), Event(Kind.END, ident, NOW - 3, turn="t"),
        ):
            held.join(CODEX, event)
    held.settle(NOW, lambda agent, session: None)
    return held


class Gaze:
    """What the user looks at, look by look."""

    def __init__(self, *looks):
        self.looks, self.asked = list(looks), []

    def __call__(self, pids):
        self.asked.append(set(pids))
        return frozenset(self.looks.pop(0))


def seen(held, gaze, times):
    attention = Attention(gaze)

    async def look():
        return [await attention.seen(held) for _ in range(times)]

    return asyncio.run(look())


def test_what_is_looked_at_twice_in_a_row_is_seen():
    held = sessions("s1", "s2")
    gaze = Gaze({1}, {1, 2}, {2}, set(), {2})
    assert seen(held, gaze, 5) == [[], [("codex", "s1")], [("codex", "s2")], [], []]
    assert gaze.asked == [{1, 2}] * 5


def test_while_nothing_waits_nobody_is_asked():
    held = sessions("s1")
    held.mark_seen(("codex", "s1"))
    assert seen(held, Gaze(), 2) == [[], []]
    assert seen(sessions("s1", role="machine"), Gaze(), 2) == [[], []]


def test_old_waits_are_looked_at_now_and_then_and_young_ones_at_once():
    held, attention = sessions("s1"), Attention(Gaze())
    since = held.verdicts["codex", "s1"].since
    young, old = since + YOUNG / 2, since + YOUNG + 1
    assert [attention.due(held, young + n * GLANCE) for n in range(3)] == [True, True, True]
    assert [attention.due(held, old + n) for n in (0, 1, CALM, CALM + 1, -3600)] == [True, False, True, False, True]
