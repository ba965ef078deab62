"""An upstream as a tick has it, for tests that need one."""

from harness.store.work_lists import Upstream

#: A table of one job that has not been probed yet.
NEVER_SEEN = Upstream(
    upstream_id="delta_table:flights:1",
    source="delta_table",
    sensor_id="flights",
    read_type="streaming",
    job_ids=(1,),
)
