"""The HTTP side of the emulator: routes, requests, responses.

In: requests without a socket. Out: response bodies.
Imports the runs of the emulator.
"""
