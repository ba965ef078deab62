"""One script per promise about speed; each prints figures and ratios of one run."""
