"""What the user wants, by his settings and by what he silenced and has seen. Shell: kept in files that may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from island.manner import Ear
from island.model import Snapshot
from island.quiet import Hush, after, veiled
from island.settings import Settings
from island.store import SettingsFile, load_hush, load_seen, save_hush, save_seen, stamp, state_path


class Wishes:
    """The newest of what the user wants. Another island may change what is kept: the tray, while a table is watched."""

    def __init__(self) -> None:
        self.file = SettingsFile()
        self.hush = Hush()
        self.seen: Mapping[str, None] = {}
        self._load()

    @property
    def settings(self) -> Settings:
        """The settings that count."""
        return self.file.settings

    @property
    def ear(self) -> Ear:
        """How the user listens."""
        return Ear(self.settings.manner, self.hush)

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong with the files."""
        return tuple(filter(None, (self.file.trouble(), self._unkept)))

    def changed(self) -> bool:
        """Look at the files, and tell whether anything is wanted otherwise now."""
        kept = self._stamps != self._look()
        if kept:
            self._load()
        return self.file.changed() or kept

    def silence(self, action: str, now: float) -> bool:
        """Do one of the actions of `quiet`, and keep what it silences; False if it is none of them."""
        hush = after(self.hush, action, now)
        if hush is not None:
            self.hush = hush
            self._keep(lambda: save_hush(hush))
        return hush is not None

    def saw(self, seen: Mapping[str, None]) -> None:
        """Keep what the user has seen, if it is anything new."""
        if seen is not self.seen:
            self.seen = seen
            self._keep(lambda: save_seen(seen))

    def veil(self, snapshot: Snapshot, *, exported: bool) -> Snapshot:
        """Leave out what is not to be shown: in the menu, or exported to other programs."""
        titles = self.settings.exports if exported else self.settings.titles
        return veiled(snapshot, titles=titles, names=not self.hush.hidden)

    def _load(self) -> None:
        self._stamps = self._look()
        self.hush, spoilt = load_hush()
        self.seen, unread = load_seen()
        self._unkept = " and ".join(filter(None, (spoilt, unread)))

    def _look(self) -> tuple[tuple[int, ...], ...]:
        return stamp(state_path("quiet.json")), stamp(state_path("seen.json"))

    def _keep(self, save: Callable[[], None]) -> None:
        try:
            save()
        except OSError as error:
            self._unkept = f"forgotten when island ends, as it cannot be kept: {error}"
        else:
            self._unkept = ""
        self._stamps = self._look()
