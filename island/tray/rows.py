"""Menu rows under numbers that a host can hold on to. Pure: must not speak D-Bus or look at a clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from island.tray.entry import MenuRow

ROOT = 0  # stands for the menu itself
RECENT = 10.0  # a click may come for a row that has just left the menu

Path = tuple[str, ...]  # the keys of a row and of those that it opens from, outermost first


class NumberedRows:
    """The rows as last published, each without those that it opens.

    A row keeps its number as long as it opens from the same ones, also for a while after it has gone.
    """

    def __init__(self) -> None:
        self.published: Mapping[int, MenuRow] = {}
        self._within: Mapping[int, Sequence[int]] = {}  # what each row opens, in the order shown
        self._left: Mapping[int, tuple[Path, MenuRow, float]] = {}  # rows gone, and when
        self._paths: Mapping[Path, int] = {}
        self._fresh = count(ROOT + 1)

    def differs(self, rows: Sequence[MenuRow]) -> bool:
        """Say whether other rows than these are published, whatever their texts."""
        return [path for path, _ in _flat(rows)] != list(self._paths)

    def reword(self, rows: Sequence[MenuRow]) -> Mapping[int, MenuRow]:
        """Take over the new texts of rows already published, and return those rows."""
        known = {self._paths[path]: row for path, row in _flat(rows) if path in self._paths}
        changed = {number: row for number, row in known.items() if self.published[number] != row}
        self.published = {**self.published, **changed}
        return changed

    def publish(self, rows: Sequence[MenuRow], now: float) -> None:
        """Replace the rows."""
        gone = {number: (path, self.published[number], now) for path, number in self._paths.items()}
        left = {number: item for number, item in {**self._left, **gone}.items() if now - item[2] < RECENT}
        recent = {path: number for number, (path, _, _) in left.items()}
        flat = dict(_flat(rows))
        self._paths = {path: recent[path] if path in recent else next(self._fresh) for path in flat}
        self.published = {self._paths[path]: row for path, row in flat.items()}
        self._left = {number: item for number, item in left.items() if number not in self.published}
        within: dict[int, list[int]] = {}
        for path, number in self._paths.items():
            within.setdefault(self._paths.get(path[:-1], ROOT), []).append(number)
        self._within = within

    def within(self, number: int) -> Sequence[int]:
        """Return what a row opens, or the menu itself."""
        return self._within.get(number, ())

    def find(self, number: int) -> MenuRow | None:
        """Return the row with this number, also one that has just gone."""
        if number in self.published:
            return self.published[number]
        return self._left[number][1] if number in self._left else None


def _flat(rows: Sequence[MenuRow], above: Path = ()) -> Iterator[tuple[Path, MenuRow]]:
    """Yield all rows, each before those that it opens."""
    for row in rows:
        path = (*above, row.key)
        yield path, replace(row, rows=()) if row.rows else row
        yield from _flat(row.rows, path)
