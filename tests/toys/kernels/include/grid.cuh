#pragma once

// The first of `each` elements of this thread; the others follow a block apart.
__device__ __forceinline__ long long first(int each) {
    return (long long)blockIdx.x * blockDim.x * each + threadIdx.x;
}
