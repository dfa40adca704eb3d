// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

namespace vg {
namespace {

// A run of indices, and the next one to be taken.
struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
};

// Each worker begins with a share of its own, the same in every call: what it reads and writes is in the caches of its core
// then, and fetching it from those of another costs more than many a task. When it is done it helps with the others.
struct Job {
    Task task;
    void *context;
    const volatile int32_t *cancel;
    static constexpr int most_shares = 64;
    Share shares[most_shares];
    int count;  // of shares
    std::atomic<bool> stopped{false};
    int helpers_wanted;
    int helpers_joined = 0;
    std::atomic<int> helpers_left{0};
};

bool is_set(const volatile int32_t *cancel) { return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED); }

void work(Job &job, int worker) {
    for (int k = 0; k < job.count; ++k) {
        Share &share = job.shares[(worker + k) % job.count];
        for (;;) {
            if (is_set(job.cancel)) {
                job.stopped = true;
                return;
            }
            const int64_t index = share.next.fetch_add(1, std::memory_order_relaxed);
            if (index >= share.end) break;
            job.task(job.context, index, worker);
        }
    }
}

// To sleep and to be woken takes longer than many a job, so a thread looks around a little before it sleeps: the others
// finish soon, and the next call often follows at once.
template <class Until>
void linger(Until &&until) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::microseconds(30); !until() && Clock::now() < end;) {
#if defined(__x86_64__)
        for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
#endif
    }
}

class Pool {
public:
    void run(Job &job) {
        std::unique_lock<std::mutex> lock(mutex_);
        // One job at a time owns the helpers; a second caller computes alone rather than waiting.
        if (job_) {
            lock.unlock();
            work(job, 0);
            return;
        }
        while (size_ < job.helpers_wanted) {
            if (!start_helper()) break;
        }
        job_ = &job;
        ++serial_;
        wake_.notify_all();
        lock.unlock();
        work(job, 0);
        lock.lock();
        job_ = nullptr;  // nobody joins any more
        lock.unlock();
        const auto done = [&] { return job.helpers_left == job.helpers_joined; };
        linger(done);
        lock.lock();
        done_.wait(lock, done);
    }

private:
    // A helper takes no signals: they are for the threads of the program, whose waiting they are to interrupt.
    bool start_helper() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        bool started = true;
        try {
            std::thread([this, worker = size_ + 1] { loop(worker); }).detach();
        } catch (...) {
            started = false;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        size_ += started;
        return started;
    }

    void loop(int worker) {
        std::unique_lock<std::mutex> lock(mutex_);
        uint64_t served = 0;
        for (;;) {
            wake_.wait(lock, [&] { return job_ && serial_ != served && worker <= job_->helpers_wanted; });
            Job &job = *job_;
            served = serial_;
            ++job.helpers_joined;
            lock.unlock();
            work(job, worker);
            lock.lock();
            ++job.helpers_left;
            if (job.helpers_left == job.helpers_joined) done_.notify_all();
            lock.unlock();
            linger([&] { return serial_ != served; });
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Job *job_ = nullptr;
    std::atomic<uint64_t> serial_{0};
    int size_ = 0;
};

// Never destroyed: helpers may still sleep in it when the process exits. After a fork the child has no helpers,
// so it starts with a fresh pool, as the library does when it is loaded: not at the first call, inside which another
// thread may fork.
alignas(Pool) unsigned char storage[sizeof(Pool)];
Pool *pool = nullptr;

void make_pool() { pool = new (storage) Pool; }

[[maybe_unused]] const int ready = [] {
    make_pool();
    return pthread_atfork(nullptr, nullptr, make_pool);
}();

}  // namespace

bool parallel_for(int64_t count, int threads, const volatile int32_t *cancel, Task task, void *context) {
    const int helpers = static_cast<int>(count < threads ? count : threads) - 1;
    if (helpers <= 0) {
        for (int64_t i = 0; i < count; ++i) {
            if (is_set(cancel)) return false;
            task(context, i, 0);
        }
        return true;
    }
    Job job;
    job.task = task;
    job.context = context;
    job.cancel = cancel;
    job.helpers_wanted = helpers;
    job.count = std::min(helpers + 1, Job::most_shares);
    for (int k = 0; k < job.count; ++k) {
        job.shares[k].next.store(k * count / job.count, std::memory_order_relaxed);
        job.shares[k].end = (k + 1) * count / job.count;
    }
    pool->run(job);
    return !job.stopped;
}

}  // namespace vg
