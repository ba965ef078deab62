"""Assembles the report's one file: markup, style, script, chart library and data.

No text from outside is ever part of markup or code: it is JSON in an element that browsers do not
execute, and the script shows it as text. A content security policy allows the scripts and the
style that are here, by their digests, and nothing else: no address is ever requested.
"""

import base64
import hashlib
import json
from importlib.resources import files

from harness import __version__
from harness.inspect.page.content import Budget, Content, content_of
from harness.inspect.page.read import Recorded

#: The report has at most so many bytes, as long as its jobs leave room for that.
MOST_BYTES = 2_900_000
#: How often the history is halved to that end; then there is hardly any.
_HALVINGS = 8

_PACKAGE = "harness.inspect.page"
#: What would end the element, or be a line terminator to an older parser.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>Heartbeat</title>
<style>{style}</style>
</head>
{body}
<script type="application/json" id="content">{content}</script>
<script>{library}</script>
<script>{script}</script>
</html>
"""


def document_of(recorded: Recorded) -> str:
    """Return the report as one HTML file."""
    budget = Budget()
    for _ in range(_HALVINGS):
        document = _assembled(content_of(recorded, version=__version__, budget=budget))
        if len(document.encode()) <= MOST_BYTES:
            break
        budget = budget.halved()
    return document


def embedded(content: Content) -> str:
    """Return JSON that may stand in an element of markup, whatever its texts are."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _assembled(content: Content) -> str:
    style, script = _asset("assets/page.css"), _asset("assets/page.js")
    library = _asset("vendor/echarts.min.js")
    policy = (
        f"default-src 'none'; script-src {_digest(library)} {_digest(script)};"
        f" style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        style=style,
        body=_asset("assets/page.html"),
        content=embedded(content),
        library=library,
        script=script,
    )


def _asset(name: str) -> str:
    text = files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")
    # A parser of HTML reads these as one character, and the digest is of what it has read.
    return text.replace("\r\n", "\n").strip("\n")


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
