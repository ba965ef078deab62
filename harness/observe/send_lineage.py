"""Sends events through OpenLineage's client; runs in a process of its own (``delivery``).

It reads a request from its standard input, sends the events in their order up to the first that is
not accepted, and prints how many were.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import __version__

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, RunEvent

#: What pip installs for it.
EXTRA = "lineage"
#: Names in each event what has made it.
PRODUCER = f"urn:heartbeat:{__version__}"


def event_of(content: dict[str, Any]) -> "RunEvent":
    """Return an event in the client's own model, which checks it.

    Args:
        content: A step as ``lineage`` describes it.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import RunFacet, error_message_run, job_type_job

    facts = RunFacet(producer=PRODUCER).with_additional_properties(**content["facts"])
    facets: dict[str, Any] = {"heartbeat_run": facts}
    if content["error"]:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=content["error"], programmingLanguage="UNKNOWN", producer=PRODUCER
        )
    kind = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="HEARTBEAT", jobType="JOB", producer=PRODUCER
    )
    return RunEvent(
        eventType=RunState[content["type"]],
        eventTime=content["at"],
        run=Run(runId=content["run_id"], facets=facets),
        job=Job(namespace=content["namespace"], name=content["job"], facets={"jobType": kind}),
        inputs=[_input(each) for each in content["inputs"]],
        producer=PRODUCER,
    )


def _input(content: dict[str, Any]) -> "InputDataset":
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import dataset_version_dataset

    facets: dict[str, Any] = {}
    if content["version"] is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=content["version"], producer=PRODUCER
        )
    return InputDataset(namespace=content["namespace"], name=content["name"], facets=facets)


def send(request: dict[str, Any]) -> tuple[int, str | None]:
    """Send events, and return how many were accepted, and why the next one was not.

    Args:
        request: ``transport``, as the client configures it, and ``events``.
    """
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport import get_default_factory
    except ModuleNotFoundError:
        return 0, f"the package openlineage-python is missing; pip install 'heartbeat[{EXTRA}]'"
    delivered = 0
    try:
        # As an object: neither the environment nor a file of the client's own changes it.
        if path := request["transport"].get("log_file_path"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        transport = get_default_factory().create(request["transport"])
        client = OpenLineageClient(transport=transport)
        for each in request["events"]:
            client.emit(event_of(each))
            delivered += 1
    except Exception as error:
        message = str(error).strip() or type(error).__name__
        return delivered, message.splitlines()[0]
    return delivered, None


def main() -> None:
    """Send what the standard input has."""
    delivered, reason = send(json.load(sys.stdin))
    json.dump({"delivered": delivered, "reason": reason}, sys.stdout)


if __name__ == "__main__":
    main()
