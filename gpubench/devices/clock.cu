// The SM clock, read on the GPU: one thread counts cycles over a stretch of the global timer. While it runs it also holds
// the stream, so that the host can enqueue the next call. It touches no memory but its own few numbers.

__device__ __forceinline__ unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

// The global timer advances in ticks, on some GPUs of 1 µs: a stretch begins and ends as one turns.
__device__ __forceinline__ unsigned long long turn() {
    const unsigned long long before = now();
    unsigned long long t;
    do t = now();
    while (t == before);
    return t;
}

// out = cycles, ns; over at least `least` ns, which lie in memory so that one launch serves every length.
extern "C" __global__ void hold(unsigned long long* __restrict__ out, const unsigned long long* __restrict__ least) {
    const unsigned long long least_ns = least[0];
    const unsigned long long t0 = turn();
    const long long c0 = clock64();
    unsigned long long t1;
    do t1 = turn();
    while (t1 - t0 < least_ns);
    const long long c1 = clock64();
    out[0] = c1 - c0;
    out[1] = t1 - t0;
}

// out = the least step of the global timer in ns, among `turns` of them.
extern "C" __global__ void tick(unsigned long long* __restrict__ out, int turns) {
    unsigned long long least = ~0ull;
    unsigned long long before = turn();
    for (int i = 0; i < turns; ++i) {
        const unsigned long long t = turn();
        if (t - before < least) least = t - before;
        before = t;
    }
    out[0] = least;
}

// Spins for at least `count` cycles of the SM clock, none for 0; out = cycles, ns of the global timer.
extern "C" __global__ void cycles(unsigned long long* __restrict__ out, long long count) {
    const unsigned long long t0 = now();
    const long long c0 = clock64();
    long long c1 = c0;
    while (c1 - c0 < count) c1 = clock64();
    out[0] = c1 - c0;
    out[1] = now() - t0;
}
