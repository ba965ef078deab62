"""Reads, checks and loads the files that operators edit: controls, triggers, policies, assets.

In: ``seeds/*.csv``. Out: findings, the accepted rows, and the changes as rows of the ledger.
Imports ``sense.preprocess`` to check queries, ``store`` and the packages below it.
"""
