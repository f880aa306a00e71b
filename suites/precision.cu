// ReLU of numbers of one byte, which torch has for some formats only. A sign in the highest bit is all that it looks at,
// so that one text serves int8 and both float8: a negative number becomes 0.

__device__ __forceinline__ unsigned relu4(unsigned four) { return four & ~((four >> 7 & 0x01010101u) * 0xffu); }

// out[i] = max(x[i], 0) for n numbers, 16 of them a thread; the last n % 16 fall to the first threads. Both are aligned to
// 16 bytes.
extern "C" __global__ void relu_bytes(
    const unsigned char* __restrict__ x, unsigned char* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 16) {
        const uint4 in = reinterpret_cast<const uint4*>(x)[i];
        reinterpret_cast<uint4*>(out)[i] = {relu4(in.x), relu4(in.y), relu4(in.z), relu4(in.w)};
    }
    if (i < n % 16) {
        const long long last = n / 16 * 16 + i;
        out[last] = x[last] >> 7 ? 0 : x[last];
    }
}
