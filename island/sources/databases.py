"""Follow one SQLite database that an agent writes: rows in, records out. Never writes, decides nothing, knows no clock.

A look opens a connection of its own, asks a few short questions outside any transaction, and closes it: the writer is
never blocked, its log can always be reset, and it stays the one that tidies up at its end.

* With a write-ahead log, readers and writers do not meet (https://sqlite.org/wal.html): the connection is read-only.
  Closing it looks to the system like a write of the log, so a hint that finds nothing new must cost no look.
* Without one, SQLite would make the log's files anew for a reader, or lock the writer out. So nothing is locked
  (`immutable`), and what was read counts only if the file is the same before and after.
"""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson

from island.agents.base import Query
from island.model import Record
from island.sources.files import Look, Stamp, beginning, stamp

#: What SQLite writes beside a database: a change there is a change of the database.
LOG, JOURNAL = "-wal", "-journal"
INDEX = "-shm"  # of the log; its header tells of each commit, also of two within one tick of the file system's clock
HEADER = 48

PATIENCE = 0.1  # seconds; a reader of a log waits only while somebody recovers it
OPERATIONS = 3_000_000  # of SQLite's machine, for one question: about 0.3 s. Whoever asks for more asks wrongly
ROWS = 5_000

#: How SQLite begins to say that a schema is another one.
OTHER_SCHEMA = ("no such table", "no such column")


def database(path: str) -> str:
    """Return the database that a file belongs to: itself, unless it is a log or a journal."""
    return path.removesuffix(LOG).removesuffix(JOURNAL)


class _Sign(NamedTuple):
    """What changes when a database does. log: None unless there is one in use, so that readers need no lock."""

    file: Stamp | None
    log: Stamp | None
    commits: bytes

    @property
    def moment(self) -> float:
        return max(s.mtime_ns for s in (self.file, self.log) if s) / 1e9


class Database:
    """A SQLite database. A look that finds it changed asks all questions, and gives the rows that the last did not."""

    def __init__(self, path: str, queries: Iterable[Query]) -> None:
        self.path = path
        self._queries = tuple(queries)
        self._sign: _Sign | None = None
        self._given: frozenset[bytes] = frozenset()
        self._wrong = ""

    def look(self) -> Look:
        """Return the rows that are new or have changed, as records in the order of the questions."""
        sign = self._read_sign()
        if sign.file is None:
            self._sign, self._given = None, frozenset()
            return Look(gone=True)
        if sign == self._sign:
            return Look(error=self._wrong)
        try:
            with closing(self._open(sign)) as connection:
                rows, self._wrong = self._ask_all(connection, sign.moment)
        except sqlite3.Error as error:
            return Look(error=_words(error))
        if not sign.log and self._read_sign() != sign:
            return Look()  # written meanwhile: a hint is on its way
        given, self._given, self._sign = self._given, frozenset(rows), sign
        fresh = tuple(Record(self.path, row, 0, sign.moment) for row in rows if row not in given)
        return Look(fresh, error=self._wrong)

    def _read_sign(self) -> _Sign:
        log, commits = stamp(self.path + LOG), beginning(self.path + INDEX, HEADER)
        return _Sign(stamp(self.path), log if log and (log.size or commits) else None, commits)

    def _open(self, sign: _Sign) -> sqlite3.Connection:
        mode = "mode=ro" if sign.log else "mode=ro&immutable=1"
        if not sign.log and any(beginning(self.path + JOURNAL, 8)):  # a finished one is emptied, cut or gone
            raise sqlite3.OperationalError("being written")
        uri = f"{Path(self.path).absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        connection.set_progress_handler(lambda: True, OPERATIONS)
        connection.text_factory = lambda text: text.decode(errors="replace")
        return connection

    def _ask_all(self, connection: sqlite3.Connection, moment: float) -> tuple[list[bytes], str]:
        last = self._sign.moment if self._sign else 0.0
        rows: list[bytes] = []
        wrong: list[str] = []
        for query in self._queries:
            try:
                rows += _ask(connection, query, {"moment": moment, "last": last})
            except sqlite3.OperationalError as error:
                if not str(error).startswith(OTHER_SCHEMA):
                    raise
                wrong += [] if query.optional else [f"unknown schema: {error}"]
        return rows, "; ".join(wrong)


def _ask(connection: sqlite3.Connection, query: Query, values: dict[str, float]) -> Iterator[bytes]:
    cursor = connection.execute(query.sql, values)
    names = [column[0] for column in cursor.description]
    for row in cursor.fetchmany(ROWS):
        yield orjson.dumps({"query": query.name, **dict(zip(names, row, strict=True))}, default=_text)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError


def _words(error: sqlite3.Error) -> str:
    return "a query takes too long" if str(error) == "interrupted" else str(error)
