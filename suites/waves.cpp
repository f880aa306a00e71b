// Equal chunks of work dealt out to a CPU's threads: a chunk more than there are threads costs a turn here too. A chunk is
// what 128 threads of a block do in waves.cu; the timeline tells the thread and ns of the host's clock.

#include <chrono>
#include <omp.h>

#define STEP 16
#define THREADS 128

static long long now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
}

extern "C" void equal_blocks(float* out, long long* timeline, float one, int trips, int blocks) {
#pragma omp parallel for schedule(static, 1)
    for (long long block = 0; block < blocks; ++block) {
        const long long begin = now();
        for (int thread = 0; thread < THREADS; ++thread) {
            float x = thread % 32;
            for (int trip = 0; trip < trips; ++trip) {
                for (int step = 0; step < STEP; ++step) x = x * one + one;
            }
            out[block * THREADS + thread] = x;
        }
        timeline[3 * block] = omp_get_thread_num();
        timeline[3 * block + 1] = begin;
        timeline[3 * block + 2] = now();
    }
}
