"""Random pasts: many of them in the same batches, hard enough, and the same again from a seed."""

from random import Random

import pytest

from tests.support.refresh.key_types import Code, KeyOptions, NullKeys, UnchangedNewer
from tests.support.refresh.oracle_key import fold_key
from tests.support.refresh.random_histories import Shape, flat_key_rows, key_histories, of_history

TOUCH = KeyOptions(null_keys=NullKeys.QUARANTINE)
PARITY = KeyOptions(null_keys=NullKeys.MATCH, unchanged_newer=UnchangedNewer.SKIP)


@pytest.mark.parametrize("options", [TOUCH, PARITY, KeyOptions(has_date_column=False)])
def test_histories_side_by_side_do_not_see_each_other(options: KeyOptions) -> None:
    batches = key_histories(Random(7), 40, 6, Shape(null_key=0.0))
    together = fold_key(batches, options)

    for number in range(40):
        alone = fold_key(of_history(batches, number), options)
        assert tuple(row for row in together.hub if row.key[0] == number) == alone.hub
        versions = tuple(each for each in together.history if each.key[0] == number)
        assert versions == alone.history


def test_a_seed_makes_the_same_histories_again() -> None:
    assert key_histories(Random(1), 9, 6) == key_histories(Random(1), 9, 6)
    assert key_histories(Random(1), 9, 6) != key_histories(Random(2), 9, 6)


@pytest.mark.parametrize("code", Code)
def test_every_code_is_frequent(code: Code) -> None:
    codes = fold_key(key_histories(Random(1), 200, 6), TOUCH).codes.values()
    output = [each for batch in codes for each in batch]

    assert output.count(code) > len(output) // 100


def test_histories_written_as_rows_of_one_table_can_be_distinguished_and_put_in_order() -> None:
    batches = key_histories(Random(3), 20, 5)
    rows = list(flat_key_rows(batches))

    assert len({(row.s_input_id, row.row_num) for row in rows}) == len(rows)
    assert [(row.history, row.key) for row in rows] == [
        row.key for batch in batches for row in batch.rows
    ]
