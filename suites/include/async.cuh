// Copies from global to shared memory that a thread starts and does not wait for (cp.async, compute capability 8.0 and
// newer), and dynamic shared memory. Tests stand in for this file to run the kernels without a GPU.

#ifndef ASYNC_CUH
#define ASYNC_CUH

// All of a block's dynamic shared memory, by name. It begins where a row of 32 banks does.
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) float4 name[]

// Start to copy a float, or four of them that are aligned in both memories. Where it is not `wanted`, zeros are written and
// nothing is read: `from` may then lie anywhere.
__device__ __forceinline__ void copy_async(float* to, const float* from, bool wanted) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(wanted ? 4 : 0) : "memory");
}

__device__ __forceinline__ void copy_async_4(float* to, const float* from, bool wanted) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(wanted ? 16 : 0) : "memory");
}

// 16 bytes of anything, to an address of the window of shared memory.
__device__ __forceinline__ void copy_async_16(unsigned to, const void* from, bool wanted) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(wanted ? 16 : 0) : "memory");
}

// The copies started since the last call become a group.
__device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until all of this thread's groups have arrived but the last `left`. Other threads' need a barrier too.
template <int left>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

#endif
