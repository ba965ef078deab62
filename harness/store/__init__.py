"""Where the ledgers live: Delta tables on a local disk, or tables of the session's catalog."""
