// What a kernel can ask the machine it runs on, and accesses whose way through the caches is named. All of it is PTX that
// the compiler neither moves nor drops; tests stand in for this file to run the kernels without a GPU.

#ifndef MACHINE_CUH
#define MACHINE_CUH

// Cycles of this multiprocessor's clock, and ns of the clock that all of them share.
__device__ __forceinline__ long long cycles_now() {
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ long long nanoseconds_now() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ int multiprocessor() {
    int id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__device__ __forceinline__ int lane() {
    int id;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
}

// A square root as the special function unit gives it, without correction.
__device__ __forceinline__ float square_root(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

// 64 bits of global memory, kept by the L1 (.ca) or passed through it (.cg).
__device__ __forceinline__ unsigned long long load_through_l1(unsigned long long at) {
    unsigned long long value;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ unsigned long long load_past_l1(unsigned long long at) {
    unsigned long long value;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

// An address of shared memory in its own window, and 32 bits read from there.
__device__ __forceinline__ unsigned shared_address(const void* at) {
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ __forceinline__ unsigned load_shared(unsigned at) {
    unsigned value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
    return value;
}

// A word handed from one thread to another by way of global memory, nothing but the word.
__device__ __forceinline__ unsigned load_relaxed(const unsigned* at) {
    unsigned value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ void store_relaxed(unsigned* at, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// The same with all that was written before the store, which is seen after the load.
__device__ __forceinline__ unsigned load_acquire(const unsigned* at) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(unsigned* at, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared(unsigned at, unsigned value) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

// A thread that waits for another.
__device__ __forceinline__ void wait_a_moment() {}

// Every block of a grid that fits the GPU at once waits for all others. `arrived` starts at 0 once and only grows.
__device__ __forceinline__ void all_blocks(unsigned* arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned turn = atomicAdd(arrived, 1u) / gridDim.x;
        while (load_acquire(arrived) / gridDim.x <= turn) wait_a_moment();
    }
    __syncthreads();
}

#endif
