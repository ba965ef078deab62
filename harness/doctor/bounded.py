"""Lets a question that may hang go on without an answer."""

import threading
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


def within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Return what a function returns; its thread is left behind when that takes too long.

    Raises:
        TimeoutError: It has not come back.
        Exception: What the function raised.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answers[0]
