"""The README says what the code says."""

import re
import tomllib
from pathlib import Path

from island.__main__ import parser
from island.agents import AGENTS
from island.cli.bars import FORMATS
from island.cli.status import CODES
from island.hooks.rows import HOOKS, rows
from island.model import Reason, State
from island.settings import Settings, parse

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def row(agent):
    return f"| {agent.label} | {'; '.join(agent.evidence)} | {'; '.join(agent.blind_in())} |"


def test_the_table_of_agents_is_that_of_the_code():
    expected = "\n".join(row(agent) for agent in AGENTS.values())
    table = README.split("| agent | evidence | invisible |\n| --- | --- | --- |\n")[1].split("\n\n")[0]
    assert table == expected, f"the table must read:\n{expected}"


def test_the_variables_that_move_an_agents_files_are_those_of_the_code():
    class Asked(dict):
        def get(self, name, default=None):
            self[name] = default
            return default

    asked = Asked()
    for agent in AGENTS.values():
        agent.home(asked, "/home/dev")
    [sentence] = re.findall(r"\n\n(`[A-Z_`, \nand]*) are honoured\.", README)
    assert re.findall(r"`([A-Z_]+)`", sentence) == sorted(asked)


def test_the_table_of_hooks_is_that_of_the_code():
    table = README.split("| agent | file | what its hooks add |\n| --- | --- | --- |\n")[1].split("\n\n")[0]
    told = [line.split(" | ")[:2] for line in table.splitlines()]
    assert told == [[f"| {agent.label}", f"`{HOOKS[name].file}`"] for name, agent in AGENTS.items() if name in HOOKS]


def test_the_agents_without_hooks_on_windows_are_named():
    lacking = [AGENTS[name].label for name in HOOKS if name not in rows("win32")]
    (sentence,) = re.findall(r"Of ([^.]*) that is not\s+known: for them there are no hooks on Windows", README)
    assert re.split(r",\s+| and ", sentence) == lacking


def test_every_state_and_reason_is_explained():
    assert [word for word in (*State, *Reason) if f"`{word}`" not in README and word != Reason.MAYBE_PERMISSION] == []


def test_every_command_is_listed():
    (commands,) = (a for a in parser()._actions if a.dest == "==SUPPRESS==" and a.choices)
    assert [c for c in commands.choices if f"island {c}" not in README] == []


def test_every_module_is_on_the_map():
    modules = {p.stem for p in (ROOT / "island").glob("*.py")} - {"__init__", "__main__"}
    assert sorted(m for m in modules if f"`{m}`" not in README) == []


def test_every_picture_is_there():
    assert [p for p in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README) if not (ROOT / p).is_file()] == []


def test_ci_runs_the_test_command_of_the_readme():
    assert len(re.findall(r"^python3 -m venv .venv .*pytest.*$", README, re.MULTILINE)) == 1


def test_the_top_level_holds_nothing_else():
    allowed = {"pyproject.toml", "island", "tests", "sequences", "README.md", "LICENSE"}
    assert {p.name for p in ROOT.iterdir() if not p.name.startswith(".")} - allowed <= {"build", "dist"}


def test_the_script_names_are_those_of_the_readme():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"island": "island.__main__:main"}


def test_the_settings_of_the_readme_are_settings():
    (text,) = (t for t in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "quiet_hours" in t)
    settings, problems = parse(text)
    assert problems == ()
    assert settings != Settings()


def test_every_format_and_every_exit_code_is_explained():
    assert [name for name in FORMATS if f"--format {name}" not in README and name not in ("json", "plain")] == []
    assert [code for code in CODES.values() if not re.search(rf"\b{code} (if|while)\s", README)] == []
