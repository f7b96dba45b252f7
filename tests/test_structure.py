"""The shape of the program: imports go one way, the pure part touches nothing, an agent is a file, a row, a folder."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from island.agents import AGENTS

ROOT = Path(__file__).parent.parent
ISLAND = ROOT / "island"

#: From the words outwards. A module imports from its own layer or from those before it, never from those after.
LAYERS = (
    ("model", "text"),
    ("leases", "quiet"),
    ("manner", "news"),
    ("view",),
    ("handback",),
    ("claims",),
    ("rules", "notices", "agents", "blanking", "runs"),
    ("settings",),
    ("sequence", "sessions"),
    ("hooks", "sources"),
    ("calls",),
    ("bindings",),
    ("observer",),
    ("store",),
    ("wishes",),
    ("scene",),
    ("look", "replay", "attention", "running", "instance", "tray", "desktop"),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

#: Time, files and processes are arguments here, or not known at all.
PURE = ("model", "text", "leases", "quiet", "manner", "news", "view", "handback", "claims", "rules", "notices",
        "blanking", "agents", "settings", "sequence", "sessions", "runs", "hooks.rows", "hooks.records",
        "hooks.outline", "hooks.edit", "tray.entry", "tray.face", "tray.listing", "tray.menu", "tray.rows",
        "tray.session")
IMPURE = {
    "asyncio", "concurrent", "glob", "io", "multiprocessing", "os", "psutil", "random", "select", "shutil", "signal",
    "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "watchfiles",
}
CLOCKS = {"now", "utcnow", "today"}
VAGUE = re.compile("manager|handler|helper|util|processor", re.IGNORECASE)


def name_of(path):
    parts = path.relative_to(ISLAND).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(p): p for p in sorted(ISLAND.rglob("*.py")) if name_of(p)}
each_module = pytest.mark.parametrize("module", MODULES)
each_pure_module = pytest.mark.parametrize(
    "module", [m for m in MODULES if any(m == p or m.startswith(f"{p}.") for p in PURE)])


@cache
def tree(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(nodes):
    """Yield (module, name) of each import; `from island import x` and relative ones in full."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def own(nodes):
    """Yield the modules of island that are imported, without their first word."""
    for module, name in imported(nodes):
        if module.partition(".")[0] == "island":
            full = f"{module}.{name}".removeprefix("island.").removeprefix("island")
            yield full if full in MODULES else full.rpartition(".")[0]


def at_start(module):
    """Return the nodes that run when a module is imported: not those within functions."""
    found, wave = [], [tree(module)]
    while wave:
        node = wave.pop()
        found.append(node)
        wave += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return found


# -- directions --------------------------------------------------------------------------------------------


@each_module
def test_a_module_has_its_place_in_the_layers(module):
    assert module.partition(".")[0] in RANK


@each_module
def test_imports_go_one_way(module):
    rank = RANK[module.partition(".")[0]]
    assert [m for m in own(ast.walk(tree(module))) if m and RANK[m.partition(".")[0]] > rank] == []


def test_no_two_modules_need_each_other_to_start():
    graph = {module: {m for m in own(at_start(module)) if m and m != module} for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_never_imports_another_agent(agent):
    others = {f"agents.{name}" for name in AGENTS} - {f"agents.{agent}"}
    assert others.isdisjoint(own(ast.walk(tree(f"agents.{agent}"))))


def test_the_words_import_nothing_of_island():
    assert list(own(ast.walk(tree("model")))) == []


#: What is there on Linux alone, and the modules from which island starts on other systems.
LINUX = {"dbus_fast", "Xlib"}
ELSEWHERE = {"desktop.portable", "desktop.darwin", "desktop.win32", "tray.pystray_backend", "tray.darwin", "tray.win32"}


def test_elsewhere_island_starts_without_what_only_linux_has():
    reached, wave = set(), [m for m in MODULES if m in ELSEWHERE or m.split(".")[0] in ("__main__", "cli")]
    while wave:
        if (module := wave.pop()) not in reached:
            reached.add(module)
            wave += [m for m in own(at_start(module)) if m]
    assert {m for m in reached for name, _ in imported(at_start(m)) if name.partition(".")[0] in LINUX} == set()


# -- the pure part -----------------------------------------------------------------------------------------


@each_pure_module
def test_the_pure_part_imports_no_clock_no_files_and_no_processes(module):
    found = list(imported(ast.walk(tree(module))))
    assert {name.partition(".")[0] for name, _ in found}.isdisjoint(IMPURE)
    assert {name for module, name in found if module == "pathlib"} <= {"PurePath", "PurePosixPath"}


@each_pure_module
def test_the_pure_part_opens_nothing_and_looks_at_no_clock(module):
    calls = [node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    assert "open" not in {f.id for f in calls if isinstance(f, ast.Name)}
    assert CLOCKS.isdisjoint(f.attr for f in calls if isinstance(f, ast.Attribute))


@each_pure_module
def test_the_pure_part_keeps_nothing_between_calls(module):
    assert not [n for n in ast.walk(tree(module)) if isinstance(n, ast.Global | ast.Nonlocal)]


# -- words -------------------------------------------------------------------------------------------------


@each_module
def test_a_module_says_what_it_is_for(module):
    assert (ast.get_docstring(tree(module)) or "").strip()


def identifiers(module):
    """Yield the names that a module gives: its own, not those of others that it uses."""
    yield from module.split(".")
    for node in ast.walk(tree(module)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name


@each_module
def test_no_name_is_vague(module):
    assert [name for name in identifiers(module) if VAGUE.search(name)] == []


# -- agents ------------------------------------------------------------------------------------------------


def test_an_agent_is_a_row_a_file_and_a_folder_of_sequences():
    files = {p.stem for p in (ISLAND / "agents").glob("*.py")} - {"__init__", "base"}
    folders = {p.name for p in (ROOT / "sequences").iterdir() if any(p.glob("*.jsonl"))} - {"fleet"}
    assert set(AGENTS) == folders
    assert set(AGENTS) <= files
    assert {name: agent.name for name, agent in AGENTS.items()} == {name: name for name in AGENTS}
