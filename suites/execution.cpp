// The chain of dependent multiply-adds of execution.cu for one thread of a CPU: what it waits for is the latency of the
// unit. A CPU tells no cycles, so that only ns are given. Rates and everything else there have no counterpart.

#include <chrono>

#if UNIT == 0 && CHAINS == 1
extern "C" void chains(float* out, long long* clocks, int one, int zero, int links, long long n) {
    const auto begun = std::chrono::steady_clock::now();
    const float unit = (float)one;
    for (long long i = 0; i < n; ++i) {
        float x = 0;
        for (int done = 0; done < links; ++done) x = __builtin_fmaf(unit, x, unit);
        out[i] = x;
    }
    clocks[0] = 0;
    clocks[1] = (std::chrono::steady_clock::now() - begun) / std::chrono::nanoseconds(1);
}
#endif
