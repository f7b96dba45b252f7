"""What cannot be seen of older versions of an agent."""

from hypothesis import given
from hypothesis import strategies as st

from island.agents import AGENTS
from island.agents.base import Before

numbers = st.lists(st.integers(0, 999), min_size=1, max_size=4)


def told(version):
    return ".".join(map(str, version))


def padded(version):
    return (version + [0] * 4)[:4]


@given(numbers, numbers, st.sampled_from(["", "-beta.2", "+build", " (stable)"]))
def test_versions_are_compared_number_by_number(version, other, rest):
    assert Before(told(other), "x").holds(told(version) + rest) == (padded(version) < padded(other))


@given(st.sampled_from(["", "wonder", "main", ".5"]))
def test_of_a_version_that_is_not_known_it_may_be_so(version):
    assert Before("0.1", "x").holds(version)


def test_of_no_version_all_is_said():
    for agent in AGENTS.values():
        assert agent.blind_in() == tuple(map(str, agent.blind)) == agent.blind_in("", "99999")
