"""Probes Kafka topics by their offsets: one client and one batch of requests for a cluster.

In: topics with cursors. Out: one change for each topic with new messages.
Imports ``sense`` and the packages below it.
"""
