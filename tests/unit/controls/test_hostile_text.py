"""Hostile text in each of the ten columns: refused in one sentence, or carried as mere text."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config.sources import Source
from harness.controls.check import check
from harness.controls.findings import has_errors, render_findings
from harness.controls.header import COLUMNS
from harness.controls.parse import ControlsFile, parse_controls
from harness.platform.text import escaped
from tests.support.controls_text import GOOD, HEADER
from tests.support.hostile import PRINTABLE, UNSEEN
from tests.support.macro_calls import Macros

MACROS = Macros()
HOSTILE = [*PRINTABLE, *UNSEEN]
SOURCES = [source.value for source in Source]

#: What Spark makes of a backslash in a literal, as far as the macro writes any.
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def controls_of(**cells: str) -> ControlsFile:
    """Return a file of one row, written and read as a spreadsheet would."""
    text = io.StringIO()
    text.write(HEADER + "\n")
    row = {**GOOD, **cells}
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(
        [row[column] for column in COLUMNS]
    )
    data = text.getvalue().encode(errors="surrogatepass")
    return parse_controls(data, Path("controls.csv"))


def literal_of(text: str) -> str:
    """Return the literal that the seed writes for a cell."""
    return str(MACROS.call._sql_literal(text, "string"))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_cell_is_refused_in_sentences_that_can_be_shown_or_is_kept_as_it_is(
    column: str, text: str
) -> None:
    controls = controls_of(**{column: text})
    findings = check(controls)
    for output in render_findings(findings, "controls.csv"):
        assert escaped(output) == output
    if not has_errors(findings):
        assert getattr(controls.rows[0], column) == text.strip(" ")


@pytest.mark.parametrize(
    "column",
    [column for column in COLUMNS if column not in {"asset_description", "preprocess_query"}],
)
def test_no_name_and_no_word_may_hold_what_cannot_be_seen(column: str) -> None:
    for text in (*UNSEEN, "\n", "\t"):
        assert has_errors(check(controls_of(**{column: f"a{text}b"})))


@pytest.mark.parametrize("column", ["asset_description", "preprocess_query"])
def test_text_in_lines_may_hide_nothing_and_turn_nothing_round(column: str) -> None:
    query = "select 1 as a -- {}\n\tfrom sensor_new_data"
    assert not has_errors(check(controls_of(**{column: query.format("Größe می‌خواهم 👩‍🚀")})))
    for text in UNSEEN:
        assert has_errors(check(controls_of(**{column: query.format(text)})))


@pytest.mark.parametrize("source", SOURCES)
@settings(deadline=None)
@given(text=st.text(max_size=30))
def test_any_text_is_judged_as_the_id_of_any_source(source: str, text: str) -> None:
    controls = controls_of(sensor_source=source, sensor_id=text)
    for output in render_findings(check(controls), "controls.csv"):
        assert escaped(output) == output


@pytest.mark.parametrize("source", ["delta_table", "iceberg_table", "hive_table", "kafka", "jdbc"])
@pytest.mark.parametrize("text", ["sales.a'b", "sales.a;b", 'sales."a', "sales.a b", "sales.a,b"])
def test_no_name_of_a_table_or_topic_leads_out_of_a_statement(source: str, text: str) -> None:
    assert has_errors(check(controls_of(sensor_source=source, sensor_id=text)))


@pytest.mark.parametrize("text", ["../x", "a/../../x", "..", "/etc", "a\\..\\b"])
def test_no_trigger_folder_leads_out_of_its_root(text: str) -> None:
    assert has_errors(check(controls_of(sensor_source="trigger_file", sensor_id=text)))


@settings(deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_the_seed_writes_any_cell_as_one_literal_that_means_the_same(text: str) -> None:
    literal = literal_of(text)
    inside = literal[1:-1]
    assert (literal[0], literal[-1]) == ("'", "'")
    assert not re.search(r"(?<!\\)(?:\\\\)*'", inside)
    assert _ESCAPED.sub(r"\1", inside) == text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_the_seed_renders_no_jinja_and_ends_no_statement_of_a_hostile_cell(text: str) -> None:
    assert _ESCAPED.sub(r"\1", literal_of(text)[1:-1]) == text
