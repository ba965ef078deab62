"""What each refresh strategy has to produce, in plain Python, to compare Spark's results with."""
