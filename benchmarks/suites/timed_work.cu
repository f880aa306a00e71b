// Kernels of known duration: one thread spins until so many cycles of its multiprocessor have passed, and says how many
// it really took. And a stamp: what the global timer says, for a referee that uses no profiler and no event.

__device__ __forceinline__ unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

// asked = cycles, which is what can be checked; spent = cycles that passed, ns of the global timer around them.
extern "C" __global__ void spin(long long* __restrict__ asked, long long* __restrict__ spent, long long cycles) {
    const unsigned long long t0 = now();
    const long long c0 = clock64();
    long long c1 = c0;
    while (c1 - c0 < cycles) c1 = clock64();
    const unsigned long long t1 = now();
    asked[0] = cycles;
    spent[0] = c1 - c0;
    spent[1] = t1 - t0;
}

extern "C" __global__ void stamp(long long* __restrict__ at) {
    at[0] = now();
}
