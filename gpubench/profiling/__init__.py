"""A case once under NVIDIA's hardware profiler, ncu: counts come from it, times never.

`metrics` says what is counted, `ncu` how it is asked for, `rawpage` reads what it prints, `counting` runs it and gives
every row its counters; `once` is the process inside it.
"""
