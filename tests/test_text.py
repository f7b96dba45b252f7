import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from island.text import markup, safe

# Lone surrogates are in: agents write them, and D-Bus refuses them.
anything = st.text(st.characters() | st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Zp"]))


@given(anything, st.integers(1, 80))
def test_safe_text_is_short_and_acts_on_no_display(text, width):
    shown = safe(text, width)
    assert len(shown) <= width
    assert shown == shown.strip(" ")
    assert all(unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} for char in shown)
    assert all(unicodedata.category(char) != "Cf" or char in "\u200c\u200d" for char in shown)
    shown.encode()  # neither lone surrogates nor anything else that a protocol refuses


@given(anything, st.integers(1, 80))
def test_safe_text_is_left_alone(text, width):
    once = safe(text, width)
    assert safe(once, width) == once


@given(st.text(st.characters(max_codepoint=127), max_size=300), st.integers(1, 80))
def test_what_is_dropped_leaves_no_trace(text, width):
    assert safe(text + "\u202e", width) == safe(text, width)


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=60))
def test_ordinary_text_is_left_alone(text):
    assert safe(text) == text


def test_line_ends_and_tabs_become_one_space():
    assert safe(" a\r\n\tb\u2028c\x85d ") == "a b c d"


def test_bidi_overrides_and_hidden_tags_are_dropped():
    assert safe("evil\u202egpj.exe\u2066\u200f\ufeff\U000e0041") == "evilgpj.exe"


def test_joined_emoji_and_persian_words_stay_whole():
    joined = "👩\u200d💻 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert safe(joined) == joined


def test_long_text_is_cut_with_a_mark():
    assert safe("word " * 40, 12) == "word word w…"
    assert safe("word word wo", 12) == "word word wo"
    assert safe("a\u200d\u200db", 3) == "a…"


def test_a_huge_text_is_read_no_further_than_needed():
    def endless():
        while True:
            yield "x"

    class Huge(str):
        __slots__ = ()

        def __len__(self):
            return 1 << 40

        def __iter__(self):
            return endless()

    assert safe(Huge()) == "x" * 59 + "…"


def test_markup_shows_what_was_written():
    assert markup("<b>\"a\" & 'b'</b>") == "&lt;b&gt;\"a\" &amp; 'b'&lt;/b&gt;"
