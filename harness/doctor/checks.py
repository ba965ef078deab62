"""The one list of all checks, and what runs them: one that fails itself stops no other."""

from collections.abc import Callable, Iterable, Mapping

from harness.doctor import jobs_api, leftovers, place, setup, tables, work
from harness.doctor.findings import Finding, broken
from harness.doctor.patient import Patient

Check = Callable[[Patient], Iterable[Finding]]

#: In the order in which their findings are told.
CHECKS: Mapping[str, Check] = {
    "state folder": place.state_folder,
    "disk": place.disk_space,
    "lock": place.lock,
    "metastore": place.metastore,
    "version": place.version,
    "configuration": setup.configuration,
    "controls": setup.controls,
    "secrets": setup.secrets,
    "java": setup.java,
    "tables": tables.tables,
    "last tick": leftovers.state_file,
    "inbox": leftovers.inbox,
    "handed over": leftovers.handed_over,
    "jobs api": jobs_api.jobs_api,
    "clock": work.clock,
    "upstreams": work.upstreams,
    "triggers": work.triggers,
    "runs": work.runs,
}


def examine(patient: Patient, checks: Mapping[str, Check] = CHECKS) -> list[Finding]:
    """Make every check and return what they found."""
    findings: list[Finding] = []
    for name, check in checks.items():
        try:
            findings += check(patient)
        except Exception as error:
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            todo = "put right what is broken above, and ask again"
            findings.append(broken(name, f"cannot be examined: {first[:200]}", todo=todo))
    return findings
