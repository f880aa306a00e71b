// The ping-pong of execution.cu between two blocks of a cluster: each waits at a mailbox in its own shared memory and
// writes into that of the other. Before compute capability 9.0 there is nothing in it, and the suite does not launch it.

#include "cluster.cuh"

extern "C" __global__ void CLUSTER_OF(2) ping_pong_cluster(
    int* __restrict__ out, int* __restrict__ on, long long* __restrict__ clocks, unsigned* boxes, int rounds) {
#if HAS_CLUSTERS
    __shared__ unsigned mail;
    const unsigned player = cluster_rank(), mine = shared_address(&mail), theirs = in_block(mine, 1 - player);
    mail = 0;
    cluster_wait();
    if (threadIdx.x == 0) {
        unsigned seen = 0;
        const long long ns = nanoseconds_now(), cycles = cycles_now();
        for (unsigned round = 0; round < rounds; ++round) {
            if (player == 0) send_to(theirs, 2 * round + 1);
            while ((seen = look_at(mine)) != 2 * round + (player == 0 ? 2 : 1)) {}
            if (player == 1) send_to(theirs, 2 * round + 2);
        }
        out[player] = seen;
        if (player == 0) clocks[0] = cycles_now() - cycles, clocks[1] = nanoseconds_now() - ns;
        on[player] = multiprocessor();
    }
    cluster_wait();
#endif
}
