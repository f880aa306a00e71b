// Chains of LENGTH cheap operations and their gradient. KEPT 1: every result is stored for the gradient. KEPT 0: only the
// last is, and the gradient computes the others again from the first input. Each way is one kernel; a thread takes four
// neighbouring elements, `n` counts these fours, and result k of the chain is row k of the output.

#ifndef LENGTH
#define LENGTH 3
#endif
#ifndef KEPT
#define KEPT 1
#endif

// Two results of the special function units: an exponential and a reciprocal, each off by a rounding or two.
struct Sigmoid {
    static __device__ __forceinline__ float of(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
    static __device__ __forceinline__ float slope(float y) { return y * (1.0f - y); }
};

// 1 / (1 + x), for x from 0 up: one result of these units.
struct Reciprocal {
    static __device__ __forceinline__ float of(float x) { return __fdividef(1.0f, 1.0f + x); }
    static __device__ __forceinline__ float slope(float y) { return -y * y; }
};

template <class Operation>
__device__ __forceinline__ float4 applied(const float4& x) {
    return make_float4(Operation::of(x.x), Operation::of(x.y), Operation::of(x.z), Operation::of(x.w));
}

template <class Operation>
__device__ __forceinline__ void chain_rule(float4& gradient, const float4& y) {
    gradient.x *= Operation::slope(y.x), gradient.y *= Operation::slope(y.y);
    gradient.z *= Operation::slope(y.z), gradient.w *= Operation::slope(y.w);
}

__device__ __forceinline__ long long place() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

template <class Operation>
__device__ __forceinline__ void forward(const float4* __restrict__ x, float4* __restrict__ out, long long n) {
    const long long i = place();
    if (i >= n) return;
    float4 y = x[i];
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) {
        y = applied<Operation>(y);
        if (KEPT) out[k * n + i] = y;
    }
    if (!KEPT) out[i] = y;
}

// `from` holds the results where they were kept, else the first input. Of a chain of several that was kept, the last
// result is not read: it follows from the one before.
template <class Operation>
__device__ __forceinline__ void backward(
    const float4* __restrict__ from, const float4* __restrict__ gradient, float4* __restrict__ out, long long n) {
    const long long i = place();
    if (i >= n) return;
    constexpr int read = !KEPT ? 0 : LENGTH > 1 ? LENGTH - 1 : 1;
    float4 y[LENGTH];
#pragma unroll
    for (int k = 0; k < read; ++k) y[k] = from[k * n + i];
    float4 g = gradient[i];
#pragma unroll
    for (int k = read; k < LENGTH; ++k) y[k] = applied<Operation>(k ? y[k ? k - 1 : 0] : from[i]);
#pragma unroll
    for (int k = LENGTH - 1; k >= 0; --k) chain_rule<Operation>(g, y[k]);
    out[i] = g;
}

extern "C" __global__ void sigmoids_forward(const float4* x, float4* out, long long n) { forward<Sigmoid>(x, out, n); }

extern "C" __global__ void sigmoids_backward(const float4* from, const float4* gradient, float4* out, long long n) {
    backward<Sigmoid>(from, gradient, out, n);
}

extern "C" __global__ void chain_forward(const float4* x, float4* out, long long n) { forward<Reciprocal>(x, out, n); }

extern "C" __global__ void chain_backward(const float4* from, const float4* gradient, float4* out, long long n) {
    backward<Reciprocal>(from, gradient, out, n);
}

// The yardstick: as many elements, one read and one written each.
extern "C" __global__ void chain_copy(const float4* __restrict__ x, float4* __restrict__ out, long long n) {
    const long long i = place();
    if (i < n) out[i] = x[i];
}
