// CUDA's words for a C++ compiler, so that the very text of a kernel runs where there is no GPU: one thread of a block
// after the other, each in a fiber of its own that rests wherever threads wait for each other. One-dimensional only.

#include <cmath>
#include <cstddef>
#include <functional>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fast_exponential(float x) { return std::exp(x); }
#define __expf fast_exponential  // the C library has one of that name
inline float __uint_as_float(unsigned bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

static dim3 gridDim, blockDim, blockIdx, threadIdx;

// What a kernel did, as far as it said so: bytes of its hinted accesses, and its fused multiply-adds.
extern "C" {
long long loaded, stored, fused;
}
template <class T>
T counted_load(const T* at) {
    loaded += sizeof(T);
    return *at;
}
template <class T>
T counted_fma(T a, T x, T b) {
    ++fused;
    return std::fma(a, x, b);
}
template <class T>
void __stcs(T* at, T value) {
    stored += sizeof(T);
    *at = value;
}
#define __ldcs counted_load
#define __ldcg counted_load
#define fmaf counted_fma
#define fma counted_fma

namespace emulator {

constexpr std::size_t STACK = 32 << 10, THREADS = 1024;
static ucontext_t scheduler, fibers[THREADS];
static bool finished[THREADS];
static unsigned char stacks[THREADS][STACK];
static float exchanged[THREADS];
static std::function<void()> body;

inline void rest() { swapcontext(&fibers[threadIdx.x], &scheduler); }

inline void live() {
    body();
    finished[threadIdx.x] = true;
}

// Sweeps over the threads: each goes on to where it next waits for the others.
inline void run_block() {
    for (unsigned i = 0; i < blockDim.x; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = STACK;
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], live, 0);
        finished[i] = false;
    }
    for (bool alive = true; alive;) {
        alive = false;
        for (unsigned i = 0; i < blockDim.x; ++i) {
            if (finished[i]) continue;
            threadIdx.x = i;
            swapcontext(&scheduler, &fibers[i]);
            alive |= !finished[i];
        }
    }
}

template <class... Args, std::size_t... I>
void launch(void (*kernel)(Args...), unsigned grid, unsigned block, void** given, std::index_sequence<I...>) {
    gridDim.x = grid;
    blockDim.x = block;
    body = [=] { kernel(*static_cast<Args*>(given[I])...); };
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) run_block();
}

}  // namespace emulator

inline void __syncthreads() { emulator::rest(); }

inline void __threadfence() {}

// No thread is interrupted but where it waits.
template <class T>
T atomicAdd(T* at, T value) {
    const T before = *at;
    *at += value;
    return before;
}

inline float __shfl_down_sync(unsigned, float value, int far) {
    emulator::exchanged[threadIdx.x] = value;
    emulator::rest();
    const float got = threadIdx.x % 32 + far < 32 ? emulator::exchanged[threadIdx.x + far] : value;
    emulator::rest();
    return got;
}

#define EMULATE(name)                                                                                        \
    template <class... Args>                                                                                 \
    void launch_##name(void (*kernel)(Args...), unsigned grid, unsigned block, void** given) {               \
        emulator::launch(kernel, grid, block, given, std::index_sequence_for<Args...>{});                    \
    }                                                                                                        \
    extern "C" void emulate_##name(unsigned grid, unsigned block, void** given) {                            \
        launch_##name(name, grid, block, given);                                                             \
    }
