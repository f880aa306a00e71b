// A CPU has no warps and nothing diverges in it. What it has is a branch that it guesses wrongly: the same question, asked of
// sorted and of random data, of another mechanism. Its paths are short: a long one hides a wrong guess.

#define STEP 1

// A path as in divergence.cu, not inlined: a compiler may neither take both paths and choose, nor mix their links.
__attribute__((noinline)) static float path_a(float x, int trips, float one) {
    for (int trip = 0; trip < trips; ++trip) {
        for (int step = 0; step < STEP; ++step) x = x * one + 1;
    }
    return x;
}

__attribute__((noinline)) static float path_b(float x, int trips, float one) {
    for (int trip = 0; trip < trips; ++trip) {
        for (int step = 0; step < STEP; ++step) x = x * one - 2;
    }
    return x;
}

extern "C" void data_branch(const float* x, float* out, float one, int trips, long long n) {
#pragma omp parallel for schedule(static)
    for (long long i = 0; i < n; ++i) {
        const float lane = i % 32;
        out[i] = x[i] < 0 ? path_a(lane, trips, one) : path_b(lane, trips, one);
    }
}
