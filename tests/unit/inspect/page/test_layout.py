"""Where the nodes of the dependency graph stand."""

from harness.inspect.page.layout import NAME, ROW, positions


def shape(places: list[tuple[int, int]]) -> float:
    width = max(x for x, _ in places) - min(x for x, _ in places) + NAME
    height = max(y for _, y in places) - min(y for _, y in places) + ROW
    return width / height


def test_no_two_nodes_stand_at_one_place() -> None:
    edges = [(number % 40, number) for number in range(300)] + [(3, 7), (5, 9)]
    upstreams, jobs = positions(edges, 50, 310)
    places = [*upstreams, *jobs]
    assert len(set(places)) == len(places)


def test_an_upstream_stands_on_the_left_of_its_jobs() -> None:
    edges = [(0, 0), (0, 1), (1, 1), (2, 2)]
    upstreams, jobs = positions(edges, 3, 3)
    assert all(upstreams[upstream][0] < jobs[job][0] for upstream, job in edges)


def test_what_is_not_connected_does_not_share_rows() -> None:
    upstreams, jobs = positions([(0, 0), (1, 1)], 2, 2)
    first, second = {upstreams[0], jobs[0]}, {upstreams[1], jobs[1]}
    assert {y for _, y in first}.isdisjoint(y for _, y in second) or {
        x for x, _ in first
    }.isdisjoint(x for x, _ in second)


def test_two_straight_lines_do_not_cross() -> None:
    upstreams, jobs = positions([(0, 1), (1, 0), (0, 2), (1, 2)], 2, 3)
    assert (upstreams[0][1] < upstreams[1][1]) == (jobs[1][1] < jobs[0][1])


def test_a_thousand_jobs_on_one_upstream_are_no_tower() -> None:
    upstreams, jobs = positions([(0, number) for number in range(1000)], 1, 1000)
    assert 0.5 < shape([*upstreams, *jobs]) < 6


def test_a_thousand_small_groups_fill_a_page() -> None:
    upstreams, jobs = positions([(number, number) for number in range(1000)], 1000, 1000)
    assert 1 < shape([*upstreams, *jobs]) < 4


def test_nothing_has_no_place() -> None:
    assert positions([], 0, 0) == ([], [])
