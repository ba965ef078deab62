"""Appends what probes found and producers registered to the ledgers: events first, then upstreams.

In: probe results and registered batches. Out: event and probe rows, correlated by snapshot.
Imports ``sense`` for its results, and the packages below it.
"""
