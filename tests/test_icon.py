from colorsys import rgb_to_hsv
from itertools import combinations, pairwise

import pytest
from PIL import Image, ImageChops

from island.cli.bars import COLOURS
from island.tray import icon
from island.tray.face import Face
from island.tray.icon import argb, draw

SIZES = (16, 18, 20, 22, 24, 32, 36, 40, 44, 48)
PANELS = {"dark": (36, 36, 38), "nord": (46, 52, 64), "light": (240, 240, 240), "white": (255, 255, 255)}
FACES = list(Face)


def on_panel(image, colour):
    panel = Image.new("RGBA", image.size, (*colour, 255))
    panel.alpha_composite(image)
    return panel.convert("RGB")


def difference(one, other):
    """Return how many pixels of two pictures differ for the eye."""
    grey = ImageChops.difference(one.convert("L"), other.convert("L"))
    return sum(grey.histogram()[40:])


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    shares = (c / 255 for c in colour[:3])
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("face", FACES)
def test_a_face_fills_its_size_and_leaves_the_corners_free(face, size):
    image = draw(face, size)
    assert (image.size, image.mode) == ((size, size), "RGBA")
    left, top, right, bottom = image.getbbox()
    assert min(right - left, bottom - top) >= size * 0.6
    assert [image.getpixel((x, y))[3] for x in (0, size - 1) for y in (0, size - 1)] == [0, 0, 0, 0]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("size", SIZES)
def test_faces_stay_apart_in_grey(size, panel):
    # A sixteenth of a 16 pixel icon is 16 pixels: far more than a trick of the light.
    pictures = {face: on_panel(draw(face, size), PANELS[panel]) for face in FACES}
    for one, other in combinations(FACES, 2):
        assert difference(pictures[one], pictures[other]) > size * size / 16, (one, other)


#: What is left of colours for those who lack one kind of cone (Machado, Oliveira and Fernandes 2009).
EYES = {
    "protanopia": (0.152, 1.053, -0.205, 0, 0.115, 0.786, 0.099, 0, -0.004, -0.048, 1.052, 0),
    "deuteranopia": (0.367, 0.861, -0.228, 0, 0.280, 0.673, 0.047, 0, -0.012, 0.043, 0.969, 0),
    "tritanopia": (1.256, -0.077, -0.179, 0, -0.078, 0.931, 0.148, 0, 0.005, 0.691, 0.304, 0),
}


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("panel", ["dark", "light"])
@pytest.mark.parametrize("size", [16, 22, 48])
def test_faces_stay_apart_for_the_colour_blind(size, panel, eyes):
    pictures = {face: on_panel(draw(face, size), PANELS[panel]).convert("RGB", EYES[eyes]) for face in FACES}
    for one, other in combinations(FACES, 2):
        red, green, blue = ImageChops.difference(pictures[one], pictures[other]).split()
        apart = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
        assert sum(apart[40:]) > size * size / 16, (one, other)


@pytest.mark.parametrize(("face", "degrees"), [
    (Face.ERROR, 0), (Face.YOUR_TURN, 40), (Face.CALM, 40), (Face.DONE, 160), (Face.WORKING, 200), (Face.STALLED, 330),
])
def test_a_face_has_the_colour_that_it_is_called_by(face, degrees):
    hue = 360 * rgb_to_hsv(*(channel / 255 for channel in icon.LOOKS[face].ink[:3]))[0]
    assert abs((hue - degrees + 180) % 360 - 180) < 10


def test_bars_have_the_colours_of_the_icon():
    assert {face: "#" + bytes(look.ink[:3]).hex() for face, look in icon.LOOKS.items()} == COLOURS


@pytest.mark.parametrize("size", SIZES)
def test_faces_stay_apart_by_shape_alone(size):
    shapes = {face: draw(face, size, template=True).getchannel("A") for face in FACES}
    for one, other in combinations(FACES, 2):
        assert difference(shapes[one], shapes[other]) > size * size / 16, (one, other)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("face", FACES)
def test_a_face_stands_out_from_every_panel(face, panel):
    colours = on_panel(draw(face, 22), PANELS[panel]).getcolors(22 * 22)
    clear = sum(count for count, colour in colours if contrast(colour, PANELS[panel]) >= 1.9)
    assert clear >= 22 * 22 * 0.12
    assert max(contrast(colour, PANELS[panel]) for _, colour in colours) >= 2.6


def test_the_straight_borders_of_a_small_face_lie_on_whole_pixels():
    mark = icon.DARK[:3]
    image = draw(Face.YOUR_TURN, 16)
    assert [x for x in range(16) if image.getpixel((x, 6))[:3] == mark] == [7, 8]


@pytest.mark.parametrize("size", SIZES)
def test_numbers_can_be_told_apart(size):
    numbers = [draw(Face.YOUR_TURN, size, badge).convert("L") for badge in range(2, 10)]
    for one, other in combinations(numbers, 2):
        assert difference(one, other) >= (1 if size < 20 else 2)


def test_one_session_has_no_badge_and_an_error_never_has():
    assert draw(Face.YOUR_TURN, 22, 1) is draw(Face.YOUR_TURN, 22) is draw(Face.YOUR_TURN, 22, -3)
    assert draw(Face.ERROR, 22, 5) is draw(Face.ERROR, 22)
    assert draw(Face.YOUR_TURN, 22, 2) is not draw(Face.YOUR_TURN, 22)


def test_many_are_nine_plus_and_nine_where_there_is_no_room():
    assert draw(Face.DONE, 22, 10) is draw(Face.DONE, 22, 4711)
    assert draw(Face.DONE, 22, 10).tobytes() != draw(Face.DONE, 22, 9).tobytes()
    assert draw(Face.DONE, 16, 10).tobytes() == draw(Face.DONE, 16, 9).tobytes()


@pytest.mark.parametrize("size", SIZES)
def test_a_badge_leaves_the_face_to_be_seen(size):
    for face in (Face.YOUR_TURN, Face.DONE):
        bare = draw(face, size)
        for badge in (2, 8, 10):
            covered = difference(bare.convert("L"), draw(face, size, badge).convert("L"))
            assert covered < size * size * 0.62


def test_the_same_face_is_the_same_to_the_byte():
    first = {(face, size): draw(face, size, 3).tobytes() for face in FACES for size in SIZES}
    icon._drawn.cache_clear()
    assert {(face, size): draw(face, size, 3).tobytes() for face in FACES for size in SIZES} == first


def test_a_template_is_black_and_alpha():
    for face in FACES:
        pixels = draw(face, 36, template=True).getcolors(36 * 36)
        assert {colour[:3] for _, colour in pixels if colour[3] == 255} == {icon.DARK[:3]}


def test_argb_is_in_network_order():
    image = Image.new("RGBA", (2, 1))
    image.putpixel((0, 0), (1, 2, 3, 4))
    image.putpixel((1, 0), (5, 6, 7, 8))
    assert argb(image) == bytes([4, 1, 2, 3, 8, 5, 6, 7])


def test_all_digits_are_drawn_between_neighbouring_corners():
    assert set(icon.DIGITS) == set("23456789")
    for path in " ".join(icon.DIGITS.values()).split():
        for one, other in pairwise(path):
            (ax, ay), (bx, by) = icon.CORNERS[one], icon.CORNERS[other]
            assert (ax == bx) != (ay == by)
