"""What several benchmarks share: upstreams of each kind, and ledgers with a past."""
