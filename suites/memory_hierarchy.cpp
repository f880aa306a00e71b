// The chase and the read of memory_hierarchy.cu for a CPU. One thread chases, whatever the number of blocks there; a cycle
// counter has no counterpart, so that only ns are given.

#include <chrono>

#ifndef CACHED
#define CACHED 1
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#define LINE 128

static long long nanoseconds_now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

#if CACHED  // no load of a CPU passes its caches by
// The set is touched by the thread that chases, `passes` times, and `steps` steps are timed: see the kernel. `whole` is 1.
extern "C" void chase(const unsigned long long* next, const long long* places, long long* out, long long* clocks,
    unsigned* arrived, long long lines, int passes, int whole, int steps) {
    const unsigned long long set = (unsigned long long)next;
    long long sum = 0;
    for (int pass = 0; pass < passes; ++pass)
        for (long long line = 0; line < lines; ++line) sum += (next[line * LINE / 8] - set) / LINE;
    unsigned long long at = set + places[0] * LINE;
    const long long begun = nanoseconds_now();
    for (int i = 0; i < steps; ++i) at = *(const volatile unsigned long long*)at;
    __asm__ volatile("" ::"r"(at) : "memory");  // the clock is read after the last load has come
    clocks[1] = nanoseconds_now() - begun;
    clocks[0] = 0;
    out[0] = (at - set) / LINE;
    out[1] = sum;
}
#endif

// Tiles of UNROLL × 256 accesses of 16 bytes, turn after turn, for `blocks` threads: see the kernel.
extern "C" void read_set(const unsigned* x, unsigned* out, long long tiles, long long passes, long long blocks) {
    const long long words = 4 * 256 * UNROLL;
#pragma omp parallel for schedule(static)
    for (long long b = 0; b < blocks; ++b) {
        unsigned sum = 0;
        for (long long turn = b; turn < tiles * passes; turn += blocks) {
            const unsigned* at = x + turn % tiles * words;
#pragma omp simd reduction(+ : sum)
            for (long long i = 0; i < words; ++i) sum += at[i];
        }
        out[b] = sum;
    }
}
