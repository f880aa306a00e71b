"""Two runs held against each other: which rows match, what may be judged, the verdicts and their causes."""
