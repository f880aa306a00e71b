"""The physics, as pure functions: what a workload needs and what a device can give. Loads nothing heavy."""
