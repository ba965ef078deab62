"""Writes or serves the report: one HTML page over the tables."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import interruptible, print_line, reading
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.context import Context

#: Where the page goes when neither the command nor the configuration names a place.
_DEFAULT = "heartbeat.html"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(report)


def report(
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A file, one of a volume, or an object of a bucket; else report.path, or"
            " heartbeat.html.",
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.01, max=366, help="Days of history; else report.days."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the page at an address of this machine instead.")
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="The port for --serve; 0: any.")
    ] = 8642,
) -> None:
    """Write one HTML page with all jobs, upstreams and events.

    It begins with what needs attention and needs neither a server nor the network. `tick` and `run`
    keep it current if report.path is set in heartbeat.yml.

    Examples:
        python -m harness report

        python -m harness report --output s3://my-bucket/heartbeat.html --days 30

        python -m harness report --serve
    """
    from harness.inspect.page.deliver import page_of, write_page
    from harness.platform.format import size

    if serve and output is not None:
        raise ConfigurationError("--output and --serve exclude each other: leave one out")
    with reading(may_quarantine=True) as context:
        if serve:
            _serve(context, port, days)
            return
        page = page_of(context, days=days)
        path = output or context.settings.report.path or _DEFAULT
        place = write_page(page, path, project=context.settings.project)
    print_line(f"Written: {place} ({size(len(page.encode()))})")


def _serve(context: "Context", port: int, days: float | None) -> None:
    from harness.inspect.page.deliver import page_of, server_of
    from harness.platform.jobs_emulator.http import LOOPBACK

    # An error is printed here rather than in the browser.
    page_of(context, days=days)
    with server_of(context, port=port, days=days) as server, interruptible("stopped"):
        taken = server.server_address[1]
        print_line(
            f"http://{LOOPBACK}:{taken}/ shows the report, new for each request; Ctrl-C ends it"
        )
        server.serve_forever()
