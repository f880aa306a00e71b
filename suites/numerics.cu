// Ones added one by one in a format: NUMBER is float, Float16 or Bfloat16.

#include "narrow.cuh"

#ifndef NUMBER
#define NUMBER float
#endif

// Thread i of n adds `terms` ones to i × terms, one after the other, and writes what that comes to. A thread begins where
// the one before it must end, so that as long as each does, all of them are one sum from 0 on. `unit` is 1, known only when
// the kernel runs.
extern "C" __global__ void add_ones(float* __restrict__ sums, float unit, int terms, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    NUMBER sum, one;
    narrow((float)((long long)i * terms) * unit, sum);
    narrow(unit, one);
    for (int term = 0; term < terms; ++term) sum = sum + one;
    sums[i] = widened(sum);
}
