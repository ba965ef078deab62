"""One package or module for each kind of source.

In: upstreams with their cursors. Out: data changes and new cursors.
Imports ``sense`` and the packages below it; no source imports another one.
"""
