"""Tables that fit a terminal, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st

from cbench_server.texts.fitting import fitted
from cbench_server.texts.grid import Grid, to_text, width

GRID = Grid(
    ("System", "Score", "95% CI", "Tokens", "What it says"),
    (("identity", "1.000", "0.95–1.00", "1,071 → 1,071", "leaves everything as it was " * 4),),
    frozenset({4}),
)


def test_a_table_that_fits_is_left_alone() -> None:
    assert fitted(GRID, 500) == [GRID]


def test_text_is_broken_before_a_table_is_parted() -> None:
    (only,) = fitted(GRID, 100)
    assert max(map(width, to_text(only).splitlines())) <= 100
    said = " ".join(row[4] for row in only.rows)
    assert said.split() == GRID.rows[0][4].split()


def test_columns_go_below_with_the_name_of_their_row() -> None:
    parts = fitted(GRID, 45)
    assert len(parts) > 1
    assert all(part.header[0] == "System" and part.rows[0][0] == "identity" for part in parts)
    assert [title for part in parts for title in part.header[1:]] == [*GRID.header[1:]]


@given(
    st.lists(
        st.tuples(st.text(max_size=60), st.integers().map(str), st.text(max_size=300)),
        min_size=1,
        max_size=4,
    ),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_asked_and_nothing_is_lost(
    rows: list[tuple[str, str, str]], columns: int
) -> None:
    grid = Grid(("name", "n", "text"), tuple(rows), frozenset({2}))
    parts = fitted(grid, columns)
    drawn = "\n".join(map(to_text, parts))
    longest_number = max(len(row[1]) for row in rows)
    if longest_number <= columns // 2 - 2:
        assert max(map(width, drawn.split("\n"))) <= columns
    said = "".join(cell for part in parts for row in part.rows for cell in row[1:])
    kept = sorted(letter for row in rows for letter in row[2] + row[1] if letter.isalnum())
    assert sorted(letter for letter in said if letter.isalnum()) == kept
