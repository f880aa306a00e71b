// The SM clock, read on the GPU: one thread counts cycles over a stretch of the global timer. Runs alone, for `hold_ns`, so
// that it also holds the stream while the next call is enqueued. Touches no memory but its own three numbers.

// The global timer advances in ticks, on some GPUs of a µs: the stretch begins and ends at the turn of a tick.
__device__ __forceinline__ unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

__device__ __forceinline__ unsigned long long turn() {
    const unsigned long long before = now();
    unsigned long long t;
    do t = now();
    while (t == before);
    return t;
}

// out = cycles, ns, over at least `hold_ns`.
extern "C" __global__ void hold(unsigned long long* __restrict__ out, unsigned long long hold_ns) {
    const unsigned long long t0 = turn();
    const long long c0 = clock64();
    unsigned long long t1;
    do t1 = turn();
    while (t1 - t0 < hold_ns);
    const long long c1 = clock64();
    out[0] = c1 - c0;
    out[1] = t1 - t0;
}
