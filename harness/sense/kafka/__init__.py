"""Senses Kafka topics by their offsets: one client and one batch of requests for a cluster."""
