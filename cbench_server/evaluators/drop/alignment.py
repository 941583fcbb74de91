"""The best alignment of two lists, one to one: which score of a table goes to each row."""

from collections.abc import Sequence
from heapq import nlargest
from math import inf


def best_alignment(scores: Sequence[Sequence[float]]) -> list[float]:
    """Return for each row the score of its column, no column twice, so that the sum is greatest.

    There are at least as many columns as rows. It is the Hungarian algorithm
    with potentials, over the columns that can matter: the best few of each row.
    """
    size = len(scores)
    if size == 1:
        return [max(scores[0])]
    places: dict[int, None] = {}
    for row in scores:
        places.update(dict.fromkeys(nlargest(size, range(len(row)), key=row.__getitem__)))
    table = [[row[place] for place in places] for row in scores]
    columns = len(places)
    row_prices, prices = [0.0] * (size + 1), [0.0] * (columns + 1)
    owner = [0] * (columns + 1)  # Rows and columns count from 1; 0 is nobody.
    for newcomer in range(1, size + 1):
        owner[0] = newcomer
        column, cheapest = 0, [inf] * (columns + 1)
        came_from, is_done = [0] * (columns + 1), [False] * (columns + 1)
        while owner[column]:
            is_done[column] = True
            current, step, following = owner[column], inf, 0
            for each in range(1, columns + 1):
                if not is_done[each]:
                    cost = -table[current - 1][each - 1] - row_prices[current] - prices[each]
                    if cost < cheapest[each]:
                        cheapest[each], came_from[each] = cost, column
                    if cheapest[each] < step:
                        step, following = cheapest[each], each
            for each in range(columns + 1):
                if is_done[each]:
                    row_prices[owner[each]] += step
                    prices[each] -= step
                else:
                    cheapest[each] -= step
            column = following
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    chosen = {owned: column for column, owned in enumerate(owner) if column and owned}
    return [table[each - 1][chosen[each] - 1] for each in range(1, size + 1)]
