"""The lecture's claims: their words, what a rule sees of a run, and the one verdict that follows."""
