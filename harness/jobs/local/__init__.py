"""A Jobs API on this machine: the real SDK talks to it, and its runs are local commands.

It emulates. What the vendor leaves undocumented (how long a token is remembered, what a repeat with
other parameters does) is an assumption here, and each such assumption is a setting.
"""
