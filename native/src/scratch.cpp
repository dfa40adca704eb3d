// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace vg {

struct alignas(64) Block {
    int64_t bytes;
};

namespace {

// Places where blocks wait. No lock guards them, which a thread that is gone in a forked child could hold for ever: who
// takes a block out of its place owns it.
constexpr int places = 16;
std::atomic<Block *> waiting[places];

constexpr int64_t most_kept = int64_t{1} << 28;  // in a place; more than that is not worth keeping

// A thread looks first where it has put its last block, which may still be in the caches of its core.
std::atomic<unsigned> threads_seen{0};
thread_local const unsigned own = threads_seen.fetch_add(1, std::memory_order_relaxed);

Block *put(Block *block, int place) { return waiting[place].exchange(block, std::memory_order_acq_rel); }

Block *taken(int64_t bytes) {
    for (int k = 0; k < places; ++k) {
        const int place = static_cast<int>((own + k) % places);
        if (!waiting[place].load(std::memory_order_relaxed)) continue;
        Block *block = put(nullptr, place);
        if (block && block->bytes >= bytes) return block;
        // Too small for this thread, whose next calls will be like this one; another's stays where it was.
        std::free(k && block ? put(block, place) : block);
    }
    return nullptr;
}

Block *made(int64_t bytes) {
    const uint64_t rounded = (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
    void *memory = std::aligned_alloc(64, rounded + sizeof(Block));
    return memory ? new (memory) Block{static_cast<int64_t>(rounded)} : nullptr;
}

}  // namespace

Scratch::Scratch(int64_t bytes) : wanted_(bytes > 0) {
    if (!wanted_) return;
    block_ = taken(bytes);
    if (!block_) block_ = made(bytes);
}

Scratch::~Scratch() {
    if (!block_) return;
    std::free(block_->bytes > most_kept ? block_ : put(block_, static_cast<int>(own % places)));
}

void *Scratch::memory() const { return block_ ? block_ + 1 : nullptr; }

int64_t release_scratch() {
    int64_t bytes = 0;
    for (int place = 0; place < places; ++place) {
        Block *block = put(nullptr, place);
        if (block) bytes += block->bytes;
        std::free(block);
    }
    return bytes;
}

}  // namespace vg
