"""What each refresh strategy has to come to, told in plain Python: Spark's answers are held against it."""
