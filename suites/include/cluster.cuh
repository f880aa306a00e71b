// Clusters of blocks that reach into each other's shared memory, in PTX, from compute capability 9.0 on.

#pragma once

#include "machine.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS 1
#define CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)

__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster wait for each other; what they wrote before is seen after.
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

// An address of shared memory as it is in another block of the cluster.
__device__ __forceinline__ unsigned in_block(unsigned at, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

__device__ __forceinline__ unsigned load_there(unsigned at) {
    unsigned value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
    return value;
}

__device__ __forceinline__ uint4 load_vector_there(unsigned at) {
    uint4 v;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

// A word handed from a thread of one block to one of another, nothing but the word.
__device__ __forceinline__ unsigned look_at(unsigned at) {
    unsigned value;
    asm volatile("ld.relaxed.cluster.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
    return value;
}

__device__ __forceinline__ void send_to(unsigned at, unsigned value) {
    asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}
#else
#define HAS_CLUSTERS 0
#define CLUSTER_OF(blocks)
#endif
