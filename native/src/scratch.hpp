// SPDX-License-Identifier: Apache-2.0
// Scratch memory of a call. It waits for the next call, of whichever thread: touching fresh pages is slow.
#pragma once

#include <cstdint>

namespace vg {

class Scratch {
public:
    explicit Scratch(int64_t bytes);
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;

    // False where there was no memory.
    explicit operator bool() const { return block_ || !wanted_; }
    // 64-byte aligned; null where none was wanted.
    void *memory() const;

private:
    bool wanted_;
    struct Block *block_ = nullptr;
};

// Frees what waits; the number of bytes.
int64_t release_scratch();

}  // namespace vg
