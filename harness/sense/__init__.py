"""Probes upstream systems for new data: one probe for each upstream, side by side, writing nothing.

In: the upstreams that are due, with their cursors. Out: one result for each.
Imports ``events``, ``store``, ``config`` and ``platform``; no other step.
"""
