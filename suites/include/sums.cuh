// Sums over the threads of a block.

#pragma once

// The sum over a block, in its thread 0. Blocks are whole warps.
__device__ __forceinline__ float block_sum(float total) {
    __shared__ float warps[32];
    for (int far = 16; far > 0; far /= 2) total += __shfl_down_sync(0xffffffffu, total, far);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    total = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
    for (int far = 16; far > 0; far /= 2) total += __shfl_down_sync(0xffffffffu, total, far);
    return total;
}
