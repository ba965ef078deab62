"""What a thread takes next, and how much of it."""

from harness.sense.fair_queue import FairQueue


def queue_of(threads: int = 8, **tasks: int) -> FairQueue[int]:
    queue: FairQueue[int] = FairQueue(threads)
    for source, count in tasks.items():
        queue.add(source, range(count))
    return queue


def take(queue: FairQueue[int]) -> tuple[str, list[int]]:
    source, tasks = queue.take() or ("nothing", ())
    return source, list(tasks)


def work(queue: FairQueue[int], shares: int, *, each: float, computes: float = 1.0) -> list[int]:
    """Let one thread take shares, of tasks that take so long; return how large they were."""
    counts = []
    for _ in range(shares):
        source, tasks = take(queue)
        seconds = len(tasks) * each
        queue.learn(source, count=len(tasks), seconds=seconds, computed=computes * seconds)
        queue.ended(source, was_slow=False)
        counts.append(len(tasks))
    return counts


def test_shares_of_quick_tasks_double_and_stop_growing() -> None:
    counts = work(queue_of(files=2_000), 11, each=0.0)

    assert counts == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256]


def test_a_share_of_slow_tasks_is_one_task() -> None:
    assert work(queue_of(database=5), 5, each=0.1) == [1] * 5


def test_a_share_holds_what_is_done_within_milliseconds() -> None:
    assert work(queue_of(files=100), 6, each=0.0004) == [1, 2, 4, 8, 10, 10]


def test_after_a_slow_task_shares_begin_small_again() -> None:
    queue = queue_of(files=100)
    work(queue, 4, each=0.0)

    work(queue, 1, each=0.1)

    assert len(take(queue)[1]) == 1


def test_a_source_whose_thread_computes_has_room_for_no_other() -> None:
    queue = queue_of(files=200)
    work(queue, 50, each=0.001)
    queue.take()

    assert queue.room() == 0


def test_a_source_whose_thread_waits_has_room_for_another() -> None:
    queue = queue_of(files=200)
    work(queue, 50, each=0.001, computes=0.1)
    queue.take()

    assert queue.room() > 0


def test_a_source_that_was_open_to_all_threads_and_computes_is_left_to_one() -> None:
    queue = queue_of(files=2_000)
    queue.take()
    queue.slow("files", ())
    queue.ended("files", was_slow=True)

    work(queue, 50, each=0.001)
    queue.take()

    assert queue.room() == 0


def test_a_source_stays_open_to_all_threads_while_a_share_of_it_takes_long() -> None:
    queue = queue_of(files=2_000)
    queue.take()
    queue.slow("files", ())

    work(queue, 50, each=0.001)

    assert queue.room() == 7


def test_a_share_that_takes_long_opens_its_source_to_all_threads_and_its_rest_is_next() -> None:
    queue = queue_of(files=100)
    work(queue, 4, each=0.0)
    _, (_, *rest) = take(queue)

    queue.slow("files", rest)

    assert queue.room() == 7
    assert [take(queue) for _ in range(2)] == [("files", [each]) for each in rest[:2]]


def test_the_source_with_the_fewest_threads_is_next() -> None:
    queue = queue_of(kafka=10, files=10)
    for source in ("kafka", "files"):
        queue.take()
        queue.slow(source, ())
    sources = [take(queue)[0] for _ in range(2)]
    for _ in range(2):
        queue.ended("files", was_slow=False)

    assert sources == ["kafka", "files"]
    assert take(queue)[0] == "files"


def test_a_source_leaves_the_others_their_part_of_the_threads() -> None:
    queue = queue_of(kafka=10, files=10)
    sources = [take(queue)[0] for _ in range(2)]
    queue.slow("kafka", ())

    sources += [take(queue)[0] for _ in range(queue.room())]

    assert sources.count("kafka") == 4


def test_a_source_alone_has_all_threads() -> None:
    queue = queue_of(kafka=10)
    queue.take()

    queue.slow("kafka", ())

    assert queue.room() == 7
