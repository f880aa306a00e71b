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
inline int min(int a, int b) { return a < b ? a : b; }
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
static unsigned long long exchanged[THREADS];
static unsigned waiting, barriers;  // threads at a barrier of the block; barriers that all have passed
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
    waiting = 0;
    for (unsigned alive = 1; alive;) {
        alive = 0;
        for (unsigned i = 0; i < blockDim.x; ++i) {
            if (finished[i]) continue;
            threadIdx.x = i;
            swapcontext(&scheduler, &fibers[i]);
            alive += !finished[i];
        }
        if (waiting == alive) {
            waiting = 0;
            ++barriers;
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

inline void __syncthreads() {
    const unsigned passed = emulator::barriers;
    ++emulator::waiting;
    while (emulator::barriers == passed) emulator::rest();
}

// Lanes of a warp go on together: after one sweep all of them have come here.
inline void __syncwarp() { emulator::rest(); }

inline void __threadfence() {}

// No thread is interrupted but where it waits.
template <class T>
T atomicAdd(T* at, T value) {
    const T before = *at;
    *at += value;
    return before;
}

// What a lane of the same warp has. Its lanes do the same shuffles and votes; other warps may do others.
template <class T>
T of_lane(T value, unsigned lane) {
    static_assert(sizeof value <= sizeof *emulator::exchanged);
    const unsigned base = threadIdx.x / 32 * 32;
    __builtin_memcpy(&emulator::exchanged[threadIdx.x], &value, sizeof value);
    emulator::rest();
    if (lane < 32 && base + lane < blockDim.x) {
        __builtin_memcpy(&value, &emulator::exchanged[base + lane], sizeof value);
    }
    emulator::rest();
    return value;
}
template <class T>
T __shfl_down_sync(unsigned, T value, int far) {
    return of_lane(value, threadIdx.x % 32 + far);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int far) {
    return of_lane(value, threadIdx.x % 32 ^ far);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
    return of_lane(value, lane);
}
inline unsigned __ballot_sync(unsigned, bool mine) {
    const unsigned base = threadIdx.x / 32 * 32;
    unsigned votes = 0;
    emulator::exchanged[threadIdx.x] = mine;
    emulator::rest();
    for (unsigned lane = 0; lane < 32 && base + lane < blockDim.x; ++lane) {
        votes |= (unsigned)(emulator::exchanged[base + lane] != 0) << lane;
    }
    emulator::rest();
    return votes;
}
inline bool __any_sync(unsigned lanes, bool mine) { return __ballot_sync(lanes, mine) != 0; }
inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }

#define EMULATE(name)                                                                                        \
    template <class... Args>                                                                                 \
    void launch_##name(void (*kernel)(Args...), unsigned grid, unsigned block, void** given) {               \
        emulator::launch(kernel, grid, block, given, std::index_sequence_for<Args...>{});                    \
    }                                                                                                        \
    extern "C" void emulate_##name(unsigned grid, unsigned block, void** given) {                            \
        launch_##name(name, grid, block, given);                                                             \
    }
