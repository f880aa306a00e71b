// The streams of bandwidth.cu for a CPU: the same bytes moved by every core, in loops a compiler vectorises. A GPU's
// access width, unrolling and hints have no counterpart here; `n` counts accesses of VECTOR bytes as there.

#ifndef VECTOR
#define VECTOR 16
#endif

static const long long lanes = VECTOR / 4;

extern "C" void stream_write(float* y, float value, long long n) {
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < n * lanes; ++i) y[i] = value;
}

extern "C" void stream_copy(const float* x, float* y, long long n) {
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < n * lanes; ++i) y[i] = x[i];
}

extern "C" void stream_scale(const float* x, float* y, float a, long long n) {
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < n * lanes; ++i) y[i] = a * x[i];
}

extern "C" void stream_triad(const float* x, const float* z, float* y, float a, long long n) {
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < n * lanes; ++i) y[i] = a * x[i] + z[i];
}
