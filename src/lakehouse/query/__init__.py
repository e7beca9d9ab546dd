"""The read side: queries, history, travel, diff. What the command line, the API and Python all call."""
