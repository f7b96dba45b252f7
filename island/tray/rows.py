"""Menu rows under numbers that a host can hold on to. Pure: must not speak D-Bus or look at a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from island.tray.menu import MenuRow

RECENT = 10.0  # a click may come for a row that has just left the menu


class NumberedRows:
    """The rows as last published. A key keeps its number, also for a while after its row has gone."""

    def __init__(self) -> None:
        self.published: Mapping[int, MenuRow] = {}  # in the order shown
        self._left: Mapping[int, tuple[MenuRow, float]] = {}  # rows gone, and when
        self._known: dict[str, int] = {}
        self._fresh = count(1)

    def differs(self, rows: Sequence[MenuRow]) -> bool:
        """Say whether other rows than these are published, whatever their texts."""
        return [row.key for row in rows] != [row.key for row in self.published.values()]

    def reword(self, rows: Sequence[MenuRow]) -> Mapping[int, MenuRow]:
        """Take over the new texts of rows already published, and return those rows."""
        numbered = {self._known.get(row.key): row for row in rows}
        changed = {n: numbered[n] for n, row in self.published.items() if numbered.get(n, row) != row}
        self.published = {**self.published, **changed}
        return changed

    def publish(self, rows: Sequence[MenuRow], now: float) -> None:
        """Replace the rows."""
        new = {self._number(row.key): row for row in rows}
        gone = {**self._left, **{n: (row, now) for n, row in self.published.items()}}
        self._left = {n: item for n, item in gone.items() if n not in new and now - item[1] < RECENT}
        self.published = new
        self._known = {row.key: n for n, (row, _) in self._left.items()}
        self._known |= {row.key: n for n, row in new.items()}

    def find(self, number: int) -> MenuRow | None:
        """Return the row with this number, also one that has just gone."""
        if number in self.published:
            return self.published[number]
        return self._left[number][0] if number in self._left else None

    def _number(self, key: str) -> int:
        known = self._known.get(key)
        return next(self._fresh) if known is None else known
