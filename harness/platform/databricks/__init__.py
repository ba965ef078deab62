"""The Jobs API and the workspace through the Databricks SDK, one HTTP request per call.

In: a job, a token, a run id. Out: answers as closed types.
Imports ``platform`` and ``errors``; the fake also the run states of the emulator.
"""
