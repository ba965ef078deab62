"""Reads the native triggers of a workspace's jobs: table updates, and arrivals of files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from harness.controls.imported_sensors import ImportedSensor, ImportedStatus
from harness.controls.migration.plan import Candidate, Remark, place_of
from harness.platform.databricks.api import JobsApi, JobSettings, Outcome, RunReport

_KINDS = {
    "periodic": "a schedule starts it, and no data",
    "model": "it waits for versions of a model, which are not data",
}
_WAITS = {
    "min_time_between_triggers_seconds": (
        "its starts are not kept apart",
        "use a SNAPSHOT row of seeds/event_triggers.csv with that frequency",
    ),
    "wait_after_last_change_seconds": (
        "it starts at the first change, without waiting for more",
        "pass the job what has changed: heartbeat_events lists it",
    ),
}
_ALL = "ALL_UPDATED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """What the jobs of a workspace come to."""

    candidates: tuple[Candidate, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """What a trigger watches."""

    source: str
    sensor_ids: tuple[str, ...]
    is_any: bool = False


def triggers_of(api: JobsApi, *, is_unpaused: bool = False) -> Triggers:
    """Return a control row for each table or folder that a trigger of a job watches.

    Args:
        api: Lists the jobs of the workspace, and the runs of each with such a trigger.
        is_unpaused: Write UNPAUSED whatever the trigger has: it was paused to be migrated.

    Raises:
        JobsApiError: The API did not list the jobs, or the runs of one.
    """
    candidates: list[Candidate] = []
    remarks: list[Remark] = []
    for job in api.list_jobs():
        trigger = job.settings.get("trigger")
        if not trigger:
            continue
        name = _text(job.settings.get("name")) or str(job.job_id)
        place = place_of("job", f"{job.job_id} ({name})")
        watched = _watched(trigger)
        if not isinstance(trigger, dict) or isinstance(watched, str):
            remarks.append(_left_out(place, str(watched)))
            continue
        if len(watched.sensor_ids) > 1 and not _condition(trigger):
            remarks.append(_without_condition(place))
        remarks += _differences(place, trigger)
        is_paused = trigger.get("pause_status") == "PAUSED"
        sensor, remark = _past(place, job, api)
        remarks += [remark] if remark else []
        if not is_paused:
            remarks.append(_still_active(place))
        state = "PAUSED" if is_paused and not is_unpaused else "UNPAUSED"
        cells = {
            "asset_description": f"from the trigger of {name}",
            "trigger_job_name": name,
            "job_state": state,
        }
        template = Candidate(place=place, cells=cells, sensor=sensor)
        candidates += _candidates(watched, job, template)
    return Triggers(candidates=tuple(candidates), remarks=tuple(remarks))


def _watched(trigger: object) -> _Watched | str:
    """Return what a trigger watches, or why it cannot be a row."""
    if not isinstance(trigger, dict):
        return "its trigger is not an object"
    if isinstance(update := trigger.get("table_update"), dict):
        names = update.get("table_names")
        if not isinstance(names, list) or not names or not all(map(_text, names)):
            return "its trigger names no table"
        # Without a condition: not documented here; where it is, any of them is meant.
        is_any = update.get("condition") != _ALL
        return _Watched(source="delta_table", sensor_ids=tuple(dict.fromkeys(names)), is_any=is_any)
    if isinstance(arrival := trigger.get("file_arrival"), dict):
        url = _text(arrival.get("url"))
        return _Watched(source="file", sensor_ids=(url,)) if url else "its trigger names no folder"
    kinds = [reason for kind, reason in _KINDS.items() if kind in trigger]
    return kinds[0] if kinds else f"its trigger has an unknown kind ({', '.join(sorted(trigger))})"


def _candidates(watched: _Watched, job: JobSettings, template: Candidate) -> Iterator[Candidate]:
    is_soft = watched.is_any and len(watched.sensor_ids) > 1
    for sensor_id in watched.sensor_ids:
        own = {
            "sensor_source": watched.source,
            "sensor_id": sensor_id,
            "sensor_read_type": "streaming",
            "trigger_job_id": str(job.job_id),
            "dependency_flag": "FALSE" if is_soft else "TRUE",
        }
        yield replace(template, cells={**template.cells, **own})


def _past(place: str, job: JobSettings, api: JobsApi) -> tuple[ImportedSensor, Remark | None]:
    """Return what the job has seen: all that changed before its last run began."""
    last = next(iter(api.list_runs(job.job_id)), None)
    if last is None or last.started_at is None:
        # A trigger reports no change from before there was one.
        done = ImportedStatus.COMPLETED
        return ImportedSensor(control_id="", status=done, fetched_at=job.created_at), None
    sensor = ImportedSensor(
        control_id="",
        status=_status(last),
        fetched_at=last.started_at,
        changed_at=last.ended_at or last.started_at,
        job_started_at=last.started_at,
        job_ended_at=last.ended_at,
    )
    if sensor.status is ImportedStatus.COMPLETED:
        return sensor, None
    words = "goes on" if last.outcome is None else f"ended {last.outcome}"
    reason = f"its last run {words}, so the job is held"
    remedy = "a run that succeeds releases it, or `heartbeat release` does"
    return sensor, Remark(place=place, reason=reason, remedy=remedy)


def _status(run: RunReport) -> ImportedStatus:
    if run.outcome is Outcome.SUCCEEDED:
        return ImportedStatus.COMPLETED
    return ImportedStatus.IN_PROGRESS if run.outcome is None else ImportedStatus.FAILED


def _differences(place: str, trigger: Mapping[str, object]) -> Iterator[Remark]:
    for kind in ("table_update", "file_arrival"):
        settings = trigger.get(kind)
        for name, (reason, remedy) in _WAITS.items():
            seconds = settings.get(name) if isinstance(settings, dict) else None
            if seconds:
                said = f"{name} {seconds!s:.20} is not carried over: {reason}"
                yield Remark(place=place, reason=said, remedy=remedy)


def _still_active(place: str) -> Remark:
    return Remark(
        place=place,
        reason="its trigger is active, and would start it beside Heartbeat",
        remedy="pause it in the workspace, then import again with --force --unpaused",
    )


def _condition(trigger: Mapping[str, object]) -> str:
    update = trigger.get("table_update")
    return _text(update.get("condition")) if isinstance(update, dict) else ""


def _without_condition(place: str) -> Remark:
    return Remark(
        place=place,
        reason="its trigger names several tables and no condition, so any of them starts it",
        remedy="set dependency_flag to TRUE where it needs them all",
    )


def _left_out(place: str, reason: str) -> Remark:
    remedy = "leave it with its trigger, or add rows for it by hand"
    return Remark(place=place, reason=reason, remedy=remedy, is_left_out=True)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
