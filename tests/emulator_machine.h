// Stands in for suites/include/machine.cuh in the emulator: the same functions without PTX. A block runs on the
// multiprocessor of its number; clocks go on by one each time they are read.

#define MACHINE_CUH

namespace emulator {
static long long ticks;
static char* window;
}  // namespace emulator

inline long long cycles_now() { return ++emulator::ticks; }
inline long long nanoseconds_now() { return ++emulator::ticks; }
inline int multiprocessor() { return blockIdx.x; }
inline int lane() { return threadIdx.x % 32; }

inline float square_root(float x) { return std::sqrt(x); }

inline unsigned long long load_through_l1(unsigned long long at) { return *(const unsigned long long*)at; }
inline unsigned long long load_past_l1(unsigned long long at) { return *(const unsigned long long*)at; }

// The window of shared memory begins at the variable whose address is asked for: a kernel has one.
inline unsigned shared_address(const void* at) {
    emulator::window = (char*)at;
    return 0;
}
inline unsigned load_shared(unsigned at) { return *(unsigned*)(emulator::window + at); }
inline void store_shared(unsigned at, unsigned value) { *(unsigned*)(emulator::window + at) = value; }
inline unsigned load_relaxed(const unsigned* at) { return *at; }
inline void store_relaxed(unsigned* at, unsigned value) { *at = value; }
inline unsigned load_acquire(const unsigned* at) { return *at; }
inline void store_release(unsigned* at, unsigned value) { *at = value; }
inline void wait_a_moment() { emulator::rest(); }

// Blocks run one after the other, so that a grid that waits for itself has one block.
inline void all_blocks(unsigned* arrived) { emulator::rest(); }
