"""Checks what people have written and installed: configuration, controls, secrets, Java."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from harness.config.workspace_secrets import secrets_for
from harness.controls.findings import Code, Severity
from harness.controls.load import CONTROLS, examine_controls
from harness.errors import ConfigurationError, ControlsError, StateError
from harness.inspect.doctor.findings import Finding, attention, broken, ok
from harness.inspect.doctor.installation import Patient
from harness.platform.format import count
from harness.platform.spark.java import find_java, require_pyspark

_VALIDATE = "run `python -m harness validate`, which names all of it"
_AT_ONCE = 8


def configuration(patient: Patient) -> Iterator[Finding]:
    """The configuration can be used."""
    if patient.settings is not None:
        yield ok("configuration", "can be used", where=patient.settings.file)
        return
    first, *rest = (patient.problem or "").splitlines() or ["cannot be used"]
    more = f" (and {count(len(rest), 'more line')})" if rest else ""
    yield broken("configuration", f"{first}{more}", todo=f"put it right: {_VALIDATE[4:]}")


def controls(patient: Patient) -> Iterator[Finding]:
    """The controls CSV can be fed."""
    where = patient.project / CONTROLS
    may_read = patient.settings.sensing.queries_may_read if patient.settings else ()
    try:
        checked = examine_controls(patient.project, patient.store, may_read=may_read)
    except ControlsError as error:
        lines = str(error).splitlines()
        yield broken("controls", lines[-1], where=where, todo=_VALIDATE)
        return
    except StateError:
        # What the last tick had recorded cannot be read, which the tables' own check reports.
        checked = examine_controls(patient.project, None, may_read=may_read)
    errors = [
        f"{where.name}:{each.line}: {each.message}"
        for each in checked.findings
        if each.severity is Severity.ERROR
    ]
    errors += map(str, checked.seed_problems)
    warnings = [each.message.rstrip(".") for each in checked.warnings]
    if any(each.code is Code.MASS_REMOVAL for each in checked.findings):
        yield broken("controls", errors[0], where=where, todo=_VALIDATE)
    elif errors:
        more = f" (and {count(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
        what = f"what is wrong is quarantined, the rest is in force: {errors[0]}{more}"
        yield attention("controls", what, where=where, todo=_VALIDATE)
    elif warnings:
        more = f" (and {count(len(warnings) - 1, 'more warning')})" if len(warnings) > 1 else ""
        todo = _VALIDATE if more else ""
        yield attention("controls", f"{warnings[0]}{more}", where=where, todo=todo)
    else:
        triggers = len({row.trigger_id for row in checked.triggers.rows})
        and_triggers = f" and {count(triggers, 'trigger')}" if triggers else ""
        rows = count(len(checked.controls.rows), "row")
        yield ok("controls", f"{rows}{and_triggers} without a mistake")


def secrets(patient: Patient) -> Iterator[Finding]:
    """Every secret that heartbeat.yml refers to can be fetched; none is shown."""
    if patient.settings is None:
        return
    resolver = secrets_for(patient.settings, patient.environment)
    references = patient.settings.secret_references()

    def problem(place: int) -> str | None:
        try:
            references[place][1].resolve(resolver)
        except ConfigurationError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        problems = list(pool.map(problem, range(len(references))))
    for (key, _), message in zip(references, problems, strict=True):
        if message is not None:
            yield broken(
                "secrets",
                message.rstrip("."),
                where=key,
                todo="set it where ticks run; until then whatever needs it fails",
            )
    if references and not any(problems):
        yield ok("secrets", f"{count(len(references), 'reference')} can be fetched")


def java(patient: Patient) -> Iterator[Finding]:
    """PySpark is installed, and there is a Java that it runs on."""
    if not patient.is_local:
        return
    try:
        require_pyspark()
        found = find_java(patient.environment)
    except ConfigurationError as error:
        what, _, todo = str(error).partition(": ")
        yield broken("java", what, todo=todo)
        return
    yield ok("java", f"Java {found.version}, {found.source}", where=found.home)
