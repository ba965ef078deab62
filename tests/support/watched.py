"""An upstream as a tick knows it, for tests that need one."""

from harness.store.work_lists import WatchedUpstream

#: A table of one job that nobody has looked at yet.
NEVER_SEEN = WatchedUpstream(
    upstream_id="delta_table:flights:1",
    sensor_source="delta_table",
    sensor_id="flights",
    sensor_read_type="streaming",
    upstream_key=None,
    preprocess_query=None,
    job_ids=(1,),
    position=None,
    upstream_value=None,
    latest_event_tick=None,
    latest_event_at=None,
    recent_events=(),
    failing_since=None,
    reason=None,
)
