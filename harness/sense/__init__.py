"""Looks at upstream systems for new data: one look per upstream, side by side, writing nothing."""
