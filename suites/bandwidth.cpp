// The streams of bandwidth.cu for a CPU: the same bytes moved by every core, in loops a compiler vectorises. A GPU's
// access width, unrolling and hints have no counterpart here; `n` counts accesses of VECTOR bytes as there.

#ifndef VECTOR
#define VECTOR 16
#endif

static const long long lanes = VECTOR / 4;

// out[b] is the sum of the tiles b, b + blocks, … of `tile` accesses each.
extern "C" void stream_read(const float* x, float* out, long long n, long long tile, long long blocks) {
    const long long end = n * lanes, step = tile * lanes;
#pragma omp parallel for schedule(static)
    for (long long b = 0; b < blocks; ++b) {
        float total = 0;
        for (long long first = b * step; first < end; first += blocks * step) {
            const long long stop = first + step < end ? first + step : end;
#pragma omp simd reduction(+ : total)
            for (long long i = first; i < stop; ++i) total += x[i];
        }
        out[b] = total;
    }
}

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
