"""Heartbeat: is there new data, and which jobs may run because of it?"""
