"""How often our own verdicts are wrong on this device: pools of fresh processes, split at random."""
