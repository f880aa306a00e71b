// A grid of equal blocks, each of which has a multiprocessor to itself by the shared memory it is launched with: in how many
// turns does it run?

#include "machine.cuh"

#define STEP 16

// Every thread follows a chain of STEP × `trips` dependent multiply-adds and writes how many links it had, from the number
// of its lane on. timeline[b] tells where block b ran, and when it began and ended, in ns of the clock that all
// multiprocessors share. `blocks`, which the launch implies, is for the CPU's counterpart.
extern "C" __global__ void equal_blocks(
    float* __restrict__ out, long long* __restrict__ timeline, float one, int trips, int blocks) {
    const long long begin = nanoseconds_now();
    float x = threadIdx.x % 32;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int step = 0; step < STEP; ++step) x = fmaf(x, one, one);
    }
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        long long* mine = timeline + 3 * (long long)blockIdx.x;
        mine[0] = multiprocessor(), mine[1] = begin, mine[2] = nanoseconds_now();
    }
}
