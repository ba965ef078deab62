"""Probes Iceberg tables by their metadata alone: a snapshot is new data if it changed data."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.platform.storage import Storages, normalized, reason_of
from harness.sense.preprocess.run import Questions, evaluate
from harness.sense.probe import ProbeResult
from harness.sense.sources.iceberg.catalog import Catalogs, newest_in, table_from
from harness.sense.sources.iceberg.cursor import Cursor, Pointer, cursor_from
from harness.sense.sources.iceberg.metadata import Metadata, metadata_of, read_metadata
from harness.sense.sources.iceberg.new_rows import rows_of
from harness.sense.sources.iceberg.partitions import with_partitions
from harness.sense.sources.iceberg.snapshots import Finding, Table, first_sight, follow
from harness.store.work_lists import Upstream


class IcebergProbe:
    """Senses ``iceberg_table``. No Spark job is run unless a row has a ``preprocess_query``.

    Args:
        storages: Read the metadata files.
        catalogs: Find tables by name.
        questions: Queries new rows.
    """

    def __init__(self, storages: Storages, catalogs: Catalogs, questions: Questions) -> None:
        self._storages = storages
        self._catalogs = catalogs
        self._questions = questions

    def group_of(self, upstream: Upstream) -> str:
        """Return the catalog that is a database; each other table is probed alone."""
        database = self._catalogs.database_of(upstream.sensor_id)
        return upstream.upstream_id if database is None else f"{database}:"

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream of one group; the instant plays no part."""
        database = self._catalogs.database_of(group[0].sensor_id)
        if database is None:
            return [self._probe(upstream, None) for upstream in group]
        try:
            ids = [upstream.sensor_id for upstream in group]
            locations = self._catalogs.locations(database, ids)
        except ProbeFailedError as error:
            return [_failed(upstream, str(error)) for upstream in group]
        return [self._probe(upstream, locations) for upstream in group]

    def _probe(self, upstream: Upstream, locations: Mapping[str, str] | None) -> ProbeResult:
        try:
            before = None if upstream.position is None else cursor_from(upstream.position)
            if self._catalogs.is_of_workspace(upstream.sensor_id):
                return self._probe_in_workspace(upstream, before)
            pointer = self._pointer(upstream.sensor_id, locations, before)
            if before is not None and before.pointer == pointer:
                return _unchanged(upstream)
            return self._probe_closely(upstream, before, pointer)
        except (ProbeFailedError, OSError) as error:
            return _failed(upstream, reason_of(error))

    def _pointer(
        self, sensor_id: str, locations: Mapping[str, str] | None, before: Cursor | None
    ) -> Pointer:
        if locations is None:
            folder = self._catalogs.folder_of(sensor_id)
            known = None if before is None else before.pointer
            return newest_in(self._storages.of(folder), folder, known)
        if sensor_id in locations:
            return Pointer(location=normalized(locations[sensor_id]))
        table = table_from(sensor_id)
        raise ProbeFailedError(
            f"the table {table.namespace}.{table.name} does not exist in the catalog"
            f" {table.catalog}; create it, or correct its name"
        )

    def _probe_in_workspace(self, upstream: Upstream, before: Cursor | None) -> ProbeResult:
        if upstream.preprocess_query:
            raise ProbeFailedError(
                "no preprocess_query can read the new rows of an Iceberg table of the workspace;"
                " leave it out, or run the query in the job"
            )
        loaded = self._catalogs.load(upstream.sensor_id)
        pointer = Pointer(location=loaded.location)
        if before is not None and before.pointer == pointer:
            return _unchanged(upstream)
        return self._compared(
            upstream, before, pointer, metadata_of(loaded.metadata, loaded.location)
        )

    def _probe_closely(
        self, upstream: Upstream, before: Cursor | None, pointer: Pointer
    ) -> ProbeResult:
        metadata = read_metadata(self._storages.of(pointer.location), pointer.location)
        return self._compared(upstream, before, pointer, metadata)

    def _compared(
        self, upstream: Upstream, before: Cursor | None, pointer: Pointer, metadata: Metadata
    ) -> ProbeResult:
        table = Table(sensor_id=upstream.sensor_id, metadata=metadata, pointer=pointer)
        found = first_sight(table) if before is None else follow(table, before)
        is_baseline = before is None and upstream.on_first_sight is FirstSight.BASELINE
        is_change, value = self._filtered(upstream, found, is_baseline=is_baseline)
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=found.position.to_text(),
            events=with_partitions(found, metadata.specs, self._storages) if is_change else (),
            upstream_value=value,
            gap=found.gap,
        )

    def _filtered(
        self, upstream: Upstream, found: Finding, *, is_baseline: bool
    ) -> tuple[bool, str | None]:
        is_change = bool(found.events) and not is_baseline
        if not found.events or not upstream.preprocess_query:
            return is_change, upstream.upstream_value
        if found.rows is None:
            return False, upstream.upstream_value
        rows = rows_of(found.rows)
        answer = evaluate(self._questions, upstream, rows, is_baseline=is_baseline)
        return answer.is_change, answer.upstream_value


def _unchanged(upstream: Upstream) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
    )


def _failed(upstream: Upstream, reason: str) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"The Iceberg table {upstream.sensor_id} cannot be sensed: {reason}.",
    )
