"""The subcommands, by what a person wants: set up, tick, read, tell, keep."""
