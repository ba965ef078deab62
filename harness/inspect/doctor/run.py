"""The one list of all checks, and what runs them: one that fails itself stops no other."""

from collections.abc import Callable, Iterable, Mapping

from harness.inspect.doctor import (
    configuration,
    engine,
    jobs_api,
    runs,
    state_dir,
    stray_files,
    tables,
)
from harness.inspect.doctor.findings import Finding, broken
from harness.inspect.doctor.installation import Patient

Check = Callable[[Patient], Iterable[Finding]]

#: In the order in which their findings are reported.
CHECKS: Mapping[str, Check] = {
    "state directory": state_dir.state_directory,
    "disk": state_dir.disk_space,
    "lock": state_dir.lock,
    "metastore": state_dir.metastore,
    "engine": engine.engine,
    "version": state_dir.version,
    "configuration": configuration.configuration,
    "controls": configuration.controls,
    "secrets": configuration.secrets,
    "java": configuration.java,
    "tables": tables.tables,
    "last tick": stray_files.state_file,
    "inbox": stray_files.inbox,
    "run payloads": stray_files.payload_files,
    "jobs api": jobs_api.jobs_api,
    "clock": runs.clock,
    "upstreams": runs.upstreams,
    "triggers": runs.triggers,
    "runs": runs.runs,
}

#: Of the disk and the processes of the local target alone.
_OF_THE_DISK = frozenset({"state directory", "disk", "lock"})


def examine(patient: Patient, checks: Mapping[str, Check] = CHECKS) -> list[Finding]:
    """Make every check and return what they found."""
    findings: list[Finding] = []
    for name, check in checks.items():
        if name in _OF_THE_DISK and not patient.is_local:
            continue
        try:
            findings += check(patient)
        except Exception as error:
            first = next(iter(str(error).strip().splitlines()), type(error).__name__)
            todo = "fix what is broken above, and run `doctor` again"
            findings.append(broken(name, f"cannot be examined: {first[:200]}", todo=todo))
    return findings
