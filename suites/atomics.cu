// Atomic additions, by every thread to one address or to many.

// Zeroes what count_in is to add to.
extern "C" __global__ void clear(unsigned* __restrict__ counts, int addresses) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < addresses; i += gridDim.x * blockDim.x) counts[i] = 0;
}

// `each` additions of 1 by every thread: addition i to address i modulo `addresses`, a power of two; neighbouring threads
// take neighbouring addresses. `one` is 1, known only when the kernel runs.
extern "C" __global__ void count_in(unsigned* __restrict__ counts, int addresses, int each, unsigned one) {
    const long long threads = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < each; ++k, i += threads) atomicAdd(counts + (i & (addresses - 1)), one);
}
