// A kernel that is over at once: what is timed is the launch of many.

// Launch k of a chain turns k into k + 1 in n numbers, the first whatever it finds: one that is lost, or out of order, shows.
extern "C" __global__ void next_of_chain(int* __restrict__ x, int k, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (k == 0 || x[i] == k)) x[i] = k + 1;
}
