import pytest

from island.tray import pace
from island.tray.pace import Pace


class Timer:
    def __init__(self, at, act):
        self.at, self.act = at, act
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class Loop:
    """An event loop whose time is told, not passed."""

    def __init__(self):
        self.now, self.timers = 100.0, []

    def time(self):
        return self.now

    def call_later(self, delay, act):
        self.timers.append(Timer(self.now + delay, act))
        return self.timers[-1]

    def pass_to(self, now):
        for timer in [t for t in self.timers if t.at <= now]:
            self.timers.remove(timer)
            if not timer.cancelled:
                self.now = timer.at
                timer.act()
        self.now = now


@pytest.fixture
def loop(monkeypatch):
    loop = Loop()
    monkeypatch.setattr(pace.asyncio, "get_running_loop", lambda: loop)
    return loop


def test_the_first_is_at_once_and_the_rest_keep_the_gap(loop):
    acts = []
    paced = Pace(1.0, lambda: acts.append(loop.now))
    for now in (100.0, 100.1, 100.2, 100.9, 101.5, 101.9, 105.0):
        loop.pass_to(now)
        paced.ask()
    loop.pass_to(110)
    assert acts == [100.0, 101.0, 102.0, 105.0]


def test_the_last_is_never_lost_and_nothing_comes_after_it(loop):
    acts = []
    paced = Pace(1.0, lambda: acts.append(loop.now))
    paced.ask()
    paced.ask()
    loop.pass_to(200)
    assert acts == [100.0, 101.0]


def test_waiting_replaces_what_was_due(loop):
    acts = []
    paced = Pace(1.0, lambda: acts.append(loop.now))
    paced.wait(5)
    paced.wait(3)
    paced.ask()
    loop.pass_to(200)
    assert acts == [103.0]


def test_stop_forgets_what_was_asked(loop):
    acts = []
    paced = Pace(1.0, lambda: acts.append(loop.now))
    paced.wait(1)
    paced.stop()
    loop.pass_to(200)
    assert acts == []
