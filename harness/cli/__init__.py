"""The command line: one module for each group of commands, over the same functions that tests call.

In: arguments. Out: pages, JSON and exit codes.
Imports anything below; Spark, dbt and the SDK only inside of a command.
"""
