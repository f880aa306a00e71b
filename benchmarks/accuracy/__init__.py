"""How well timers time: gpubench and its peers on kernels of known duration and on real operations."""
