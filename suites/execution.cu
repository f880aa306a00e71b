// How a grid runs: which multiprocessor a block is on, how wide a warp is, what a unit does a clock, how long a word takes
// from one thread to another.

#include "chains.cuh"

#ifndef UNIT
#define UNIT 0
#endif
#ifndef CHAINS
#define CHAINS 4
#endif
#ifndef FENCED
#define FENCED 0
#endif

// Every thread says which multiprocessor it is on, on[block][thread], and leaves its number for the thread opposite in
// shared memory: out[block][thread] = blockDim - 1 - thread, if the block shares one.
extern "C" __global__ void blocks_at_home(int* __restrict__ on, int* __restrict__ out) {
    __shared__ int left[1024];
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    left[threadIdx.x] = threadIdx.x;
    __syncthreads();
    on[i] = multiprocessor();
    out[i] = left[blockDim.x - 1 - threadIdx.x];
}

// Each thread's lane, its place in its warp.
extern "C" __global__ void lanes_of_warps(int* __restrict__ out) {
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = lane();
}

// UNIT 0 fp32 multiply-add, 1 int32 multiply-add, 2 exp2, 3 reciprocal square root. What the latter two are taken of is
// known only when the kernel runs, and gives 1.
#if UNIT == 1
using number = int;
#else
using number = float;
#endif

__device__ __forceinline__ number link(number x, number one, number zero) {
#if UNIT == 0
    return fmaf(one, x, one);
#elif UNIT == 1
    return one * x + one;
#elif UNIT == 2
    return x + exp2f(zero * x);
#else
    return x + rsqrtf(fmaf(zero, x, one));
#endif
}

// out[thread] = CHAINS × links + 0 + 1 + … for n threads: the links it did. `one` is 1 and `zero` 0.
extern "C" __global__ void chains(
    float* __restrict__ out, long long* __restrict__ clocks, int one, int zero, int links, long long n) {
    number sum = 0;
    timed_by_block(clocks, [&] {
        sum = sum_of_chains<CHAINS>((number)one, links, [&](number x) { return link(x, (number)one, (number)zero); });
    });
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)sum;
}

// Two players send each other rising numbers: player 0 the odd ones, player 1 the even ones. Each waits at a mailbox of its
// own; the last number it got there.
template <class Look, class Send>
__device__ __forceinline__ unsigned play(unsigned player, unsigned rounds, Look look, Send send) {
    unsigned seen = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        if (player == 0) send(2 * round + 1);
        while ((seen = look()) != 2 * round + (player == 0 ? 2 : 1)) wait_a_moment();
        if (player == 1) send(2 * round + 2);
    }
    return seen;
}

// out[player] is the last number it got, on[player] its multiprocessor; clocks are player 0's cycles and ns.
template <class Look, class Send>
__device__ __forceinline__ void game(
    unsigned player, int* out, int* on, long long* clocks, int rounds, Look look, Send send) {
    const long long ns = nanoseconds_now(), cycles = cycles_now();
    out[player] = play(player, rounds, look, send);
    if (player == 0) clocks[0] = cycles_now() - cycles, clocks[1] = nanoseconds_now() - ns;
    on[player] = multiprocessor();
}

// Two warps of one block, mailboxes in shared memory.
extern "C" __global__ void ping_pong_shared(
    int* __restrict__ out, int* __restrict__ on, long long* __restrict__ clocks, unsigned* boxes, int rounds) {
    __shared__ unsigned mail[2];
    const unsigned player = threadIdx.x / 32, base = shared_address(mail);
    if (threadIdx.x < 2) mail[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    const unsigned mine = base + 4 * player, theirs = base + 4 * (1 - player);
    game(player, out, on, clocks, rounds, [=] { return load_shared(mine); },
        [=](unsigned word) { store_shared(theirs, word); });
}

// Two blocks, mailboxes in global memory a KiB apart, which are 0 before and after. With FENCED 1 whatever else the sender
// wrote goes before the word, as it must when the word says that data is ready.
extern "C" __global__ void ping_pong_global(
    int* __restrict__ out, int* __restrict__ on, long long* __restrict__ clocks, unsigned* boxes, int rounds) {
    const unsigned player = blockIdx.x;
    if (threadIdx.x != 0) return;
    unsigned *mine = boxes + 256 * player, *theirs = boxes + 256 * (1 - player);
    game(player, out, on, clocks, rounds, [=] { return FENCED ? load_acquire(mine) : load_relaxed(mine); },
        [=](unsigned word) { FENCED ? store_release(theirs, word) : store_relaxed(theirs, word); });
    *mine = 0;
}
