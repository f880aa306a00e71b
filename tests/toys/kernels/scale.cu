#include "grid.cuh"

extern "C" __global__ void scale(const REAL* __restrict__ x, REAL* __restrict__ out, REAL factor, long long n) {
#pragma unroll
    for (int i = 0; i < UNROLL; i++) {
        const long long at = first(UNROLL) + (long long)i * blockDim.x;
        if (at < n) out[at] = factor * x[at];
    }
}
