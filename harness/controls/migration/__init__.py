"""Converts what started jobs before Heartbeat into its seeds.

In: an original control table, or the triggers of a workspace's jobs. Out: the controls CSV, the
seed of imported sensors, and a remark for each thing that is not carried over. Writes no table.
"""
