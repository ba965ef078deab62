"""Places the upstreams and the jobs of the dependency graph on a plane.

What is connected stands together: upstreams on the left of a block, their jobs on the right, in an
order with few crossings. The blocks fill columns, so that a thousand jobs make a page of a usual
shape. The time is linear in the number of dependencies, whatever the graph.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: The distance of two rows, the length of a name, and the room for the lines between two sides.
ROW, NAME, LINES = 30, 200, 150
#: The distance of two columns of nodes on one side.
_COLUMN = NAME + 30
_GAP = 34
#: A block of more rows than this gets further columns.
_ROWS_MIN = 24
#: Width by height that the whole is to have.
_SHAPE = 2.2
_SWEEPS = 4

#: A dependency: the number of the upstream, and that of the job.
Edge = tuple[int, int]
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Block:
    """What is connected: the numbers of its upstreams and jobs, in their order."""

    upstreams: list[int]
    jobs: list[int]

    @property
    def rows(self) -> int:
        longest = max(len(self.upstreams), len(self.jobs))
        return min(longest, max(_ROWS_MIN, math.ceil(math.sqrt(longest * _COLUMN / ROW))))

    def columns(self, side: Sequence[int]) -> int:
        return max(1, -(-len(side) // self.rows))

    @property
    def width(self) -> int:
        further = self.columns(self.upstreams) + self.columns(self.jobs) - 2
        return 2 * NAME + LINES + further * _COLUMN


def positions(
    edges: Sequence[Edge], upstream_count: int, job_count: int
) -> tuple[list[Position], list[Position]]:
    """Return the position of each upstream and of each job.

    Args:
        edges: The dependencies.
        upstream_count: How many upstreams there are; one without a job is placed, too.
        job_count: How many jobs there are.
    """
    upstreams: list[Position] = [(0, 0)] * upstream_count
    jobs: list[Position] = [(0, 0)] * job_count
    blocks = sorted(
        (
            _ordered(block, edges_of)
            for block, edges_of in _blocks(edges, upstream_count, job_count)
        ),
        key=lambda block: (-block.width, -block.rows),
    )
    area = sum((block.rows * ROW + _GAP) * block.width for block in blocks)
    height = max(math.sqrt(area / _SHAPE), max((each.rows * ROW for each in blocks), default=0))
    x, y, width = 0, 0, 0
    for block in blocks:
        if y and y + block.rows * ROW > height:
            x, y, width = x + width + _GAP, 0, 0
        width = max(width, block.width)
        _place(block, (x, y), upstreams, jobs)
        y += block.rows * ROW + _GAP
    return upstreams, jobs


def _place(
    block: _Block, corner: Position, upstreams: list[Position], jobs: list[Position]
) -> None:
    # The names of upstreams are on their left, those of jobs on their right.
    x, top = corner[0] + NAME, corner[1]
    for side, placed in ((block.upstreams, upstreams), (block.jobs, jobs)):
        columns = block.columns(side)
        rows = -(-len(side) // columns)
        # The shorter side stands in the middle of the longer one.
        start = top + (block.rows - rows) * ROW // 2
        for number, node in enumerate(side):
            column, row = divmod(number, rows)
            placed[node] = x + column * _COLUMN, start + row * ROW
        x += (columns - 1) * _COLUMN + LINES


def _blocks(
    edges: Sequence[Edge], upstream_count: int, job_count: int
) -> list[tuple[_Block, list[Edge]]]:
    """Return what is connected, with its dependencies."""
    parent = list(range(upstream_count + job_count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for upstream, job in edges:
        parent[root(upstream)] = root(upstream_count + job)
    found: dict[int, tuple[_Block, list[Edge]]] = {}
    for node in range(upstream_count + job_count):
        block, _ = found.setdefault(root(node), (_Block([], []), []))
        if node < upstream_count:
            block.upstreams.append(node)
        else:
            block.jobs.append(node - upstream_count)
    for edge in edges:
        found[root(edge[0])][1].append(edge)
    return list(found.values())


def _ordered(block: _Block, edges: Sequence[Edge]) -> _Block:
    """Return the block with each side sorted by the middle of its neighbours, some times over."""
    upstreams, jobs = block.upstreams, block.jobs
    to_jobs: dict[int, list[int]] = {}
    to_upstreams: dict[int, list[int]] = {}
    for upstream, job in edges:
        to_jobs.setdefault(upstream, []).append(job)
        to_upstreams.setdefault(job, []).append(upstream)
    for _ in range(_SWEEPS):
        jobs = _by_middle(jobs, to_upstreams, upstreams)
        upstreams = _by_middle(upstreams, to_jobs, jobs)
    return _Block(upstreams, jobs)


def _by_middle(
    side: Sequence[int], neighbours: dict[int, list[int]], other: Sequence[int]
) -> list[int]:
    place = {node: number / max(1, len(other)) for number, node in enumerate(other)}

    def middle(node: int) -> float:
        places = [place[each] for each in neighbours.get(node, ())]
        return sum(places) / len(places) if places else 0.0

    return sorted(side, key=middle)
