"""Says which upstream is meant, and why it cannot be read, in as few words as a page needs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.sense.backoff import Failing
from harness.sense.types import Upstream
from harness.show.words import upstream_name

#: Nearly every query begins with it.
_USUAL_START = re.compile(r"^select \* from sensor_new_data\b\s*", re.IGNORECASE)
#: As much of a query as tells it from another one.
_QUERY_LENGTH = 60


#: What tells one upstream from another of the same name.
Described = Upstream | Failing


def names_of(upstream_ids: Iterable[str], upstreams: Iterable[Described]) -> dict[str, str]:
    """Name each upstream; those of one name, by what tells them apart: source, key, query.

    Args:
        upstream_ids: The upstreams that are to be told, side by side.
        upstreams: All that is known of upstreams; one that is missing is told by its id.
    """
    known = {each.upstream_id: each for each in upstreams if each.source}
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for upstream_id in dict.fromkeys(upstream_ids):
        by_name[upstream_name(upstream_id)].append(upstream_id)
    names: dict[str, str] = {}
    for name, alike in by_name.items():
        found = [known[each] for each in alike if each in known]
        if len(alike) == 1:
            names[alike[0]] = name
        elif len(found) < len(alike):
            names.update({each: each for each in alike})
        else:
            names.update(_told_apart(name, found))
    return names


def _told_apart(name: str, upstreams: Sequence[Described]) -> dict[str, str]:
    aspects = [(_aspects(each), each.upstream_id) for each in upstreams]
    differing = [
        place
        for place in range(len(aspects[0][0]))
        if len({words[place] for words, _ in aspects}) > 1
    ]
    return {
        upstream_id: ", ".join([name, *(_cut(words[place]) for place in differing)])
        for words, upstream_id in aspects
    }


def _aspects(upstream: Described) -> tuple[str, ...]:
    query = " ".join((upstream.preprocess_query or "").split())
    return (
        upstream.source,
        upstream.read_type,
        f"key {upstream.upstream_key}" if upstream.upstream_key else "no key",
        (_USUAL_START.sub("", query) or "any new row") if query else "no query",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _QUERY_LENGTH else text[: _QUERY_LENGTH - 1] + "…"


def reason_beside(name: str, failure: str) -> str:
    """Return why a look failed, as it may stand beside the upstream's name: without that name."""
    said = re.escape(name)
    reason = re.sub(rf"^(?:The \w+ \w+|\w+) {said} (?:cannot be sensed: )?", "", failure, count=1)
    # "the folder /data/orders does not exist" says nothing more than "the folder does not exist".
    end = r"(?=[\s,:;]|\.?$)"
    reason = re.sub(rf"\b(folder|table) {said}{end}", r"\1", reason)
    return re.sub(rf"(?:(?<=^)|(?<=\s)){said}{end}", "it", reason)


def reason_of_waiting(reason: str) -> str:
    """Return why a job waits, without an upstream's name in the second half as well."""
    head, cannot, why = reason.partition(" cannot be read: ")
    return f"{head}{cannot}{reason_beside(head.rpartition(' ')[2], why)}" if cannot else reason
