"""Heat: cells where they belong, shaded by value, with their numbers where these fit."""

import math

import pytest

from longtail.report import heat_chart

NAMES = ["ant", "bee", "cow"]
VALUES = [[10, 2, 0], [1, 8, 1], [4, 4, 2]]
NAN = math.nan


def opacities(drawn):
    return [float(item.get("fill-opacity")) for item in drawn.of_class("mark")]


def test_the_darker_a_cell_the_larger_its_value(read):
    drawn = read(heat_chart(NAMES, NAMES, VALUES, title="t"))
    flat = [value for row in VALUES for value in row]
    order = sorted(range(9), key=lambda k: flat[k])
    shades = [opacities(drawn)[k] for k in order]
    assert shades == sorted(shades)
    assert shades[0] < 0.1 < 0.5 < shades[-1]
    # A straight map: 2 of 0 to 10 lies a fifth of the way.
    assert opacities(drawn)[1] == pytest.approx(
        shades[0] + 0.2 * (shades[-1] - shades[0]), abs=6e-3
    )


def test_cells_lie_in_rows_and_columns_and_say_what_they_are(read):
    drawn = read(heat_chart(NAMES, NAMES[:2], [row[:2] for row in VALUES], title="t"))
    boxes = [tuple(float(m.get(k)) for k in ("x", "y")) for m in drawn.of_class("mark")]
    assert len({x for x, _ in boxes}) == 2
    assert len({y for _, y in boxes}) == 3
    assert drawn.tooltips()[3] == "bee, bee: 8"
    assert drawn.description.endswith("Largest: 10 at ant, ant. Smallest: 1 at bee, ant.")


def test_numbers_stand_in_cells_that_have_room_and_whole_ones_without_decimals(read):
    assert "10" in read(heat_chart(NAMES, NAMES, VALUES, title="t")).texts
    parts = read(heat_chart(["a"], ["b", "c"], [[0.125, 0.5]], title="t")).texts
    assert {"0.125", "0.500"} <= set(parts)
    many = heat_chart(["a"], [str(k) for k in range(60)], [[1234567.0] * 60], title="t")
    assert "1,234,567" not in read(many).texts[2:]


def test_an_empty_cell_is_left_out(read):
    drawn = read(heat_chart(NAMES, NAMES, [[1, NAN, 3], [NAN] * 3, [1, 2, 3]], title="t"))
    assert len(drawn.of_class("mark")) == 5


def test_ends_of_the_shades_can_be_given_and_values_beyond_stay_at_them(read):
    drawn = read(heat_chart(["a"], NAMES, [[-5, 0.5, 7]], title="t", low=0, high=1))
    low, middle, high = opacities(drawn)
    assert middle == pytest.approx((low + high) / 2, abs=6e-3)
    assert {"0", "1"} <= set(drawn.texts)


@pytest.mark.parametrize(
    ("rows", "values"), [([], []), (["a"], [[NAN, NAN]]), (["a"], [[3, 3]]), (["a"], [[0, 0]])]
)
def test_odd_data_still_gives_a_sound_figure(read, rows, values):
    svg = heat_chart(rows, ["b", "c"], values, title="t", value_title="v")
    assert "nan" not in svg
    drawn = read(svg)
    assert ("no data" in drawn.texts) == (not drawn.of_class("mark"))


def test_names_are_escaped_cut_and_whole_in_the_tooltip(read):
    name = '<b>&"' + "x" * 300
    svg = heat_chart([name], [name, "b"], [[1, 2]], title=name, row_title=name, column_title=name)
    assert "<b>" not in svg
    drawn = read(svg)
    assert drawn.tooltips()[0] == f"{name}, {name}: 1"
    shown = [text for text in drawn.texts if text.startswith("<b>")]
    assert len(shown) == 4
    assert all("…" in text for text in shown)


@pytest.mark.parametrize("values", [[[1, 2]], [[1, 2], [1]], [[1], [2]]], ids=str)
def test_a_wrong_number_of_values_is_an_error(values):
    with pytest.raises(ValueError, match=r"2 rows.*2 columns"):
        heat_chart(["a", "b"], ["c", "d"], values, title="t")
