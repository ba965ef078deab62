"""A dbt project of somebody else that takes this one as a package: its files, and how it is run."""

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.events.event import ChangeEvent

PACKAGE = Path(__file__).resolve().parents[2]
SCHEMA = "shop"
#: Runs it both times, with `step` 1 and 2, and what it writes each time.
REGISTER = "{{ heartbeat.register_change(tags={'quality': 'checked'}) }}"

_PROJECT = """
name: shop
version: "1.0"
config-version: 2
profile: shop
flags: {send_anonymous_usage_stats: false}
models: {+file_format: delta}
"""
_PROFILE = """
shop:
  target: dev
  outputs:
    dev: {type: spark, method: session, host: local, schema: shop, threads: 2}
"""


def rows(*values: str) -> str:
    """SQL for some rows of four columns."""
    columns = "id, place, day, hour"
    if not values:
        return f"select {columns} from (select 1 as id, 'x' as place, date'2026-03-01' as day, 7 as hour) where id = 0"
    return f"select * from values {', '.join(values)} as given ({columns})"


def model(first: Sequence[str], second: Sequence[str], *hooks: str, **settings: object) -> str:
    """A model that writes some rows at the first step and others at the second."""
    settings = {"post_hook": [*(hooks or (REGISTER,))], **settings}
    listed = ", ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
    return (
        f"{{{{ config({listed}) }}}}\n"
        f"{{% if var('step') == 1 %}}{rows(*first)}{{% else %}}{rows(*second)}{{% endif %}}\n"
    )


def incremental(strategy: str, **settings: object) -> dict[str, object]:
    """The settings of an incremental model."""
    return {"materialized": "incremental", "incremental_strategy": strategy, **settings}


class Shop:
    """The project in a folder, parsed once, run many times in the session of this process."""

    #: What dbt keeps of parsing: of the package, the next project of this process has the same.
    _parsed: ClassVar[bytes | None] = None

    def __init__(self, folder: Path, models: Mapping[str, str]) -> None:
        self.folder = folder
        files = {
            "dbt_project.yml": _PROJECT,
            "profiles.yml": _PROFILE,
            "packages.yml": f"packages:\n  - local: {PACKAGE}\n",
            **{f"models/{name}.sql": text for name, text in models.items()},
        }
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.manifest: Any = None

    def parse(self) -> "Shop":
        """Fetch the package and parse everything."""
        self._invoke(None, "deps")
        kept = self.folder / "target" / "partial_parse.msgpack"
        if Shop._parsed is not None:
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(Shop._parsed)
        self.manifest = self._invoke(None, "parse", "--vars", "{step: 1}").result
        Shop._parsed = kept.read_bytes()
        return self

    def run(self, inbox: Path, *arguments: str, **variables: object) -> list[ChangeEvent]:
        """Run models and return the events that are in the inbox afterwards."""
        given = json.dumps({"heartbeat_inbox": str(inbox), **variables})
        self._invoke(self.manifest, "run", "--vars", given, *arguments)
        return events_in(inbox)

    def compiled(self, name: str) -> str:
        """The SQL that was last run for a model."""
        return (self.folder / "target/compiled/shop/models" / f"{name}.sql").read_text()

    def refusal(self, *arguments: str) -> str:
        """What dbt prints when it fails."""
        result, output = self._attempt(self.manifest, arguments)
        assert not result.success
        return f"{result.exception or ''}{output}"

    def _invoke(self, manifest: Any, *arguments: str) -> Any:
        result, output = self._attempt(manifest, arguments)
        assert result.success, f"{output[-3000:]}{result.exception or ''}"
        self.said = output
        return result

    def _attempt(self, manifest: Any, arguments: Sequence[str]) -> tuple[Any, str]:
        from dbt.cli.main import dbtRunner

        command, *given = arguments
        places = [
            *("--project-dir", str(self.folder), "--profiles-dir", str(self.folder)),
            *(() if command == "deps" else ("--target-path", str(self.folder / "target"))),
            *("--log-path", str(self.folder / "logs"), "--no-use-colors"),
        ]
        # Writing the manifest is a tenth of the time of the tests; for one it is needed, `--write-json`.
        invocation = [command, "--no-write-json", *given, *places]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            result = dbtRunner(manifest=manifest).invoke(invocation)
        return result, output.getvalue()


def events_in(inbox: Path) -> list[ChangeEvent]:
    """The events in all complete folders of an inbox."""
    found = []
    for folder in sorted(inbox.glob("registered-*")):
        assert (folder / "_SUCCESS").is_file()
        for part in sorted(folder.glob("part-*.json")):
            lines = part.read_text(encoding="utf-8").splitlines()
            found += [ChangeEvent.from_json(json.loads(line)) for line in lines]
    return found
