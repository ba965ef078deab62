"""What people see: answers as lines and tables for a terminal, and as JSON for scripts."""
