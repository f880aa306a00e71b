// Stands in for suites/include/async.cuh in the emulator. A copy is made when its thread waits for its group, not before: a
// kernel that reads too early finds what was there.

#define ASYNC_CUH

#include <deque>

#define DYNAMIC_SHARED(name) static float4 name[16 << 10]

namespace emulator {

struct Copy {
    float* to;
    const float* from;
    int floats;
    bool wanted;
};
static std::deque<std::vector<Copy>> groups[THREADS];
static std::vector<Copy> begun[THREADS];

}  // namespace emulator

inline void copy_async(float* to, const float* from, bool wanted) {
    emulator::begun[threadIdx.x].push_back({to, from, 1, wanted});
}

inline void copy_async_4(float* to, const float* from, bool wanted) {
    if ((std::size_t)to % 16 || (wanted && (std::size_t)from % 16)) __builtin_trap();
    emulator::begun[threadIdx.x].push_back({to, from, 4, wanted});
}

inline void copy_async_16(unsigned to, const void* from, bool wanted) {
    copy_async_4((float*)(emulator::window + to), (const float*)from, wanted);
}

inline void end_group() {
    emulator::groups[threadIdx.x].push_back(std::move(emulator::begun[threadIdx.x]));
    emulator::begun[threadIdx.x].clear();
}

template <int left>
void wait_for_groups() {
    auto& mine = emulator::groups[threadIdx.x];
    for (; mine.size() > left; mine.pop_front()) {
        for (const auto& copy : mine.front()) {
            for (int i = 0; i < copy.floats; ++i) copy.to[i] = copy.wanted ? copy.from[i] : 0;
        }
    }
}
