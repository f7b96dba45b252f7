from hypothesis import given
from hypothesis import strategies as st

from island.tray.entry import MenuRow
from island.tray.rows import RECENT, ROOT, NumberedRows

NOW = 1000.0


def leaf(key, text="x"):
    return MenuRow(key, text)


def menus():
    keys = st.lists(st.sampled_from("abcd"), unique=True, max_size=4)

    def level(below):
        return keys.flatmap(lambda named: st.tuples(*(
            st.builds(MenuRow, st.just(key), st.text(max_size=2), rows=below) for key in named)))

    return level(level(st.just(())))


def paths(numbered, number=ROOT, above=()):
    """Return each row's path of keys by its number, as a host reads them."""
    found = {}
    for below in numbered.within(number):
        path = (*above, numbered.published[below].key)
        found |= {below: path} | paths(numbered, below, path)
    return found


def wanted(rows, above=()):
    for row in rows:
        yield (*above, row.key), row.text
        yield from wanted(row.rows, (*above, row.key))


@given(st.lists(menus(), min_size=1, max_size=5))
def test_what_is_published_is_what_was_wanted_and_a_number_never_changes_its_row(several):
    numbered, ever = NumberedRows(), {}
    for moment, rows in enumerate(several):
        numbered.publish(rows, NOW + moment)
        shown = paths(numbered)
        assert list(shown.values()) == [path for path, _ in wanted(rows)]
        assert {shown[n]: row.text for n, row in numbered.published.items()} == dict(wanted(rows))
        assert not numbered.differs(rows)
        assert all(ever.setdefault(number, path) == path for number, path in shown.items())
        assert ROOT not in shown


@given(menus(), menus())
def test_new_texts_are_taken_over_only_where_the_rows_are_known(before, after):
    numbered = NumberedRows()
    numbered.publish(before, NOW)
    old = {path: numbered.published[n].text for n, path in paths(numbered).items()}
    changed = numbered.reword(after)
    new = dict(wanted(after))
    shown = paths(numbered)
    assert {shown[n]: row.text for n, row in changed.items()} == {
        path: new[path] for path, text in old.items() if path in new and new[path] != text}
    assert numbered.reword(after) == {}
    assert numbered.differs(after) == ([p for p, _ in wanted(before)] != [p for p, _ in wanted(after)])


def test_a_row_that_has_gone_is_still_found_for_a_while_and_gets_its_number_back():
    numbered = NumberedRows()
    numbered.publish([leaf("a"), MenuRow("b", rows=(leaf("a"),))], NOW)
    first = {path: number for number, path in paths(numbered).items()}
    numbered.publish([leaf("c")], NOW + 1)
    assert numbered.find(first["b", "a"]).key == "a"
    numbered.publish([MenuRow("b", rows=(leaf("a"),))], NOW + 2)
    assert {path: number for number, path in paths(numbered).items()}["b", "a"] == first["b", "a"]
    numbered.publish([], NOW + 3)
    numbered.publish([], NOW + 3 + RECENT)
    assert numbered.find(first["b", "a"]) is None
    assert numbered.find(ROOT) is None
