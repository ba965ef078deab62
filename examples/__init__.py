"""Examples of what Heartbeat is used for."""
