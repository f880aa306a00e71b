"""A/B measurements: two sides in turn, block by block, and the verdicts on their pairs."""
