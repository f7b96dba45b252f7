"""An agent's file with island's hooks, and without them: text in, text out. Pure.

What others wrote stays as it is. What comes out is read again, and must say what it should, before it is believed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from island.hooks.outline import Node, TextError, insert, outline, remove
from island.hooks.rows import Call, Form, Hooks, is_marked

STRANGE = "its hooks stand in a form that island does not know"

Command = Callable[[str], str]  # the command line for an event; for a program, its words as JSON


def added(row: Hooks, text: str, command: Command) -> str:
    """Return the text of an agent's file with island's entries, as they are made now.

    Raise TextError if the text is not what the file should hold.
    """
    return _checked(row, _add(row, removed(row, text), command), _wanted(row, command))


def removed(row: Hooks, text: str) -> str:
    """Return the text of an agent's file without island's entries. Raise TextError as above."""
    return _checked(row, _remove(row, text), [])


def complete(row: Hooks, text: str, command: Command) -> bool:
    """Tell whether island's entries stand there, each as it is made now, and no others of island's."""
    return sorted(entries(row, text)) == sorted(_wanted(row, command))


def entries(row: Hooks, text: str) -> list[str]:
    """Return island's entries that stand in a text: the event and the command of each."""
    if row.form is Form.OWN or not text.strip():
        return [text] if text.strip() else []
    held = _toml(text) if row.form is Form.TABLES else outline(text).value
    return [f"{event} {entry[row.command]}" for event, entry in _entries(row, held) if _is_ours(row, entry)]


def _wanted(row: Hooks, command: Command) -> list[str]:
    if row.form is Form.OWN:
        return [_own(row, command)]
    return [f"{call.event} {command(call.event)}" for call in _asked_for(row)]


def _checked(row: Hooks, text: str, wanted: list[str]) -> str:
    if sorted(entries(row, text)) != sorted(wanted):
        raise TextError(1, STRANGE)
    return text


def _asked_for(row: Hooks) -> list[Call]:
    """Return the calls, each event once: several meanings of one event are one entry."""
    return list({(call.event, call.matcher if call.told else ""): call for call in row.calls}.values())


def _add(row: Hooks, text: str, command: Command) -> str:
    match row.form:
        case Form.OWN:
            return _own(row, command)
        case Form.TABLES:
            return _add_tables(row, text, command)
        case Form.GROUPS | Form.ENTRIES:
            return _add_json(row, text, command)


def _remove(row: Hooks, text: str) -> str:
    if row.form is Form.OWN or not text.strip():
        return "" if row.form is Form.OWN else text
    return _remove_tables(text) if row.form is Form.TABLES else _remove_json(row, text)


def _is_ours(row: Hooks, entry: object) -> bool:
    return isinstance(entry, dict) and is_marked(str(entry.get(row.command)))


def _entries(row: Hooks, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield every entry of a file, whoever wrote it, with its event."""
    hooks = held.get("hooks") if isinstance(held, dict) else None
    if row.form is Form.TABLES:
        yield from ((str(e.get("event")), e) for e in hooks or () if isinstance(e, dict))
        return
    for event, items in hooks.items() if isinstance(hooks, dict) else ():
        for item in items if isinstance(items, list) else ():
            inner = item.get("hooks") if row.form is Form.GROUPS and isinstance(item, dict) else [item]
            yield from ((event, entry) for entry in (inner if isinstance(inner, list) else ()))


# -- a file of island's own --------------------------------------------------------------------------------------


def _own(row: Hooks, command: Command) -> str:
    if row.text:
        names = json.dumps([call.event for call in _asked_for(row)])
        return row.text.replace("EVENT_NAMES", names).replace("HOOK", command(""))
    hooks = {call.event: [_item(row, call, command)] for call in _asked_for(row)}
    return json.dumps({**(row.head or {}), "hooks": hooks}, indent=2) + "\n"


# -- JSON ----------------------------------------------------------------------------------------------------------


def _item(row: Hooks, call: Call, command: Command) -> dict[str, object]:
    entry = {**row.entry, row.command: command(call.event)}
    if row.form is not Form.GROUPS:
        return entry
    return {**({"matcher": call.matcher} if call.told else {}), "hooks": [entry]}


def _add_json(row: Hooks, text: str, command: Command) -> str:
    text = text if text.strip() else json.dumps(row.head or {}, indent=2) + "\n"
    root = _of(text, outline(text), dict)
    hooks = root.members.get("hooks")
    items = [(call.event, _item(row, call, command)) for call in _asked_for(row)]
    if hooks is None:
        return insert(text, root, {event: [item] for event, item in items}, "hooks")
    for event, item in items:
        hooks = _of(text, outline(text).members["hooks"], dict)
        held = hooks.members.get(event)
        text = insert(text, _of(text, held, list), item) if held else insert(text, hooks, [item], event)
    return text


def _of(text: str, node: Node, kind: type) -> Node:
    if not isinstance(node.value, kind):
        raise TextError(text.count("\n", 0, node.start) + 1, STRANGE)
    return node


def _remove_json(row: Hooks, text: str) -> str:
    while path := _path_of_ours(row, outline(text)):
        while len(path) > 2 and len(path[-2].parts) == 1:
            path.pop()  # nothing else stands in what holds it
        text = remove(text, path[-2], path[-1])
    return text


def _path_of_ours(row: Hooks, root: Node) -> list[Node]:
    """Return the nodes from the root down to one entry of island's, or to the group that holds no other; or nothing."""
    hooks = root.members.get("hooks")
    for event in hooks.members.values() if hooks else ():
        for item in event.items:
            inner = item.members.get("hooks") if row.form is Form.GROUPS else None
            for entry in inner.items if inner else [item]:
                if hooks and _is_ours(row, entry.value):
                    shared = [item, inner, entry] if inner and len(inner.items) > 1 else [item]
                    return [root, hooks, event, *shared]
    return []


# -- TOML ----------------------------------------------------------------------------------------------------------

#: One table of hooks, from its head to the next or to the end.
TABLE = re.compile(r"(?:\r?\n)?^\[\[hooks\]\][ \t]*\r?\n(?:(?!\[).*(?:\n|\Z))*", re.MULTILINE)


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise TextError(int(found.group(1)) if found else text.count("\n") + 1, str(error)) from None


def _add_tables(row: Hooks, text: str, command: Command) -> str:
    lines = []
    for call in _asked_for(row):
        entry = {"event": call.event, row.command: command(call.event), **row.entry}
        lines += ["", "[[hooks]]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    end = "" if text.endswith("\n") or not text else "\n"
    return text + end + "\n".join(lines[0 if text else 1:]) + "\n"


def _remove_tables(text: str) -> str:
    return TABLE.sub(lambda found: "" if is_marked(found.group()) else found.group(), text)
