// Branches inside a warp, on warp boundaries and on data.
//
// A path is a chain of STEP × `trips` dependent multiply-adds x = one x + length, with `one` known only when the kernel runs:
// the result counts the links, so a chain that was shortened, or a path not taken, would be found out. The number of trips is
// known at run time too, or the compiler would execute both paths under a predicate and branch nowhere. What a link adds is
// a constant in the instruction: a third register would make some paths slower than others, by the bank it happens to lie in.

#define STEP 16

template <class Link>
__device__ __forceinline__ float chain(float x, int trips, Link link) {
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int step = 0; step < STEP; ++step) x = link(x);
    }
    return x;
}

// The two paths differ in more than a constant, so that they are not made one: A adds 1 a link, B takes away 2.
__device__ __forceinline__ float path_a(float x, int trips, float one) {
    return chain(x, trips, [=](float v) { return fmaf(v, one, 1.0f); });
}

__device__ __forceinline__ float path_b(float x, int trips, float one) {
    return chain(x, trips, [=](float v) { return fmaf(v, one, -2.0f); });
}

__device__ __forceinline__ long long thread() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

// Lanes below `split` take path A, the others path B. A chain starts at the number of its lane.
extern "C" __global__ void lane_split(float* __restrict__ out, float one, int trips, int split, long long n) {
    const long long i = thread();
    const int lane = threadIdx.x % 32;
    float x = lane;
    if (lane < split) {
        x = path_a(x, trips, one);
    } else {
        x = path_b(x, trips, one);
    }
    if (i < n) out[i] = x;
}

// Of 2^shift neighbouring threads all take the same path, then the next 2^shift take the other: shift 0 splits the lanes of
// a warp, 5 is whole warps.
extern "C" __global__ void boundary_split(
    float* __restrict__ out, float one, int trips, int shift, long long n) {
    const long long i = thread();
    float x = threadIdx.x % 32;
    if (((threadIdx.x >> shift) & 1) == 0) {
        x = path_a(x, trips, one);
    } else {
        x = path_b(x, trips, one);
    }
    if (i < n) out[i] = x;
}

// Path `lane % paths` of 32; path p adds p + 1 a link.
#define PATH(p) \
    case p: x = chain(x, trips, [=](float v) { return fmaf(v, one, p + 1.0f); }); break;
#define FOUR_PATHS(p) PATH(p) PATH(p + 1) PATH(p + 2) PATH(p + 3)

extern "C" __global__ void switch_paths(float* __restrict__ out, float one, int trips, int paths, long long n) {
    const long long i = thread();
    const int lane = threadIdx.x % 32;
    float x = lane;
    switch (lane % paths) {
        FOUR_PATHS(0) FOUR_PATHS(4) FOUR_PATHS(8) FOUR_PATHS(12)
        FOUR_PATHS(16) FOUR_PATHS(20) FOUR_PATHS(24) FOUR_PATHS(28)
    }
    if (i < n) out[i] = x;
}

// The control: the same split, with few links between a load and a store of 16 bytes. Memory is what it waits for.
extern "C" __global__ void memory_split(
    const float4* __restrict__ x, float4* __restrict__ y, float one, int trips, int split, long long n) {
    const long long i = thread();
    if (i >= n) return;
    float4 v = x[i];
    if (threadIdx.x % 32 < split) {
#pragma unroll 1
        for (int trip = 0; trip < trips; ++trip) {
            v.x = fmaf(v.x, one, 1.0f), v.y = fmaf(v.y, one, 1.0f);
            v.z = fmaf(v.z, one, 1.0f), v.w = fmaf(v.w, one, 1.0f);
        }
    } else {
#pragma unroll 1
        for (int trip = 0; trip < trips; ++trip) {
            v.x = fmaf(v.x, one, -2.0f), v.y = fmaf(v.y, one, -2.0f);
            v.z = fmaf(v.z, one, -2.0f), v.w = fmaf(v.w, one, -2.0f);
        }
    }
    y[i] = v;
}

// A branch on data: the path depends on the sign of x[i], so that the order of the data decides which lanes part.
extern "C" __global__ void data_branch(
    const float* __restrict__ x, float* __restrict__ out, float one, int trips, long long n) {
    const long long i = thread();
    if (i >= n) return;
    float v = threadIdx.x % 32;
    if (x[i] < 0) {
        v = path_a(v, trips, one);
    } else {
        v = path_b(v, trips, one);
    }
    out[i] = v;
}
