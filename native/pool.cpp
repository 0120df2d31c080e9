#include "pool.hpp"

#include <sched.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model.hpp"

namespace gemel {

void Team::yield() { sched_yield(); }

#if defined(__linux__)
void Team::sleep(int before) {
    __atomic_add_fetch(&sleeping, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == before)
        syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, before, nullptr, nullptr, 0);
    __atomic_sub_fetch(&sleeping, 1, __ATOMIC_SEQ_CST);
}

void Team::wake() { syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }
#else
void Team::sleep(int before) {
    while (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == before) yield();
}

void Team::wake() {}
#endif

namespace {

#if defined(__linux__)
// The quota of one cgroup in cores, or 0 for none.
double quota_of(const std::string& folder) {
    std::ifstream version2(folder + "/cpu.max");
    std::string limit;
    double period = 0;
    if (version2 >> limit >> period) return limit == "max" || period <= 0 ? 0 : std::atof(limit.c_str()) / period;
    double quota = 0;
    std::ifstream version1(folder + "/cpu.cfs_quota_us"), period1(folder + "/cpu.cfs_period_us");
    if (version1 >> quota && period1 >> period && quota > 0 && period > 0) return quota / period;
    return 0;
}

// The smallest quota of this process's cgroup and those above it, or 0 for none.
double cpu_quota() {
    double smallest = 0;
    const auto consider = [&](const std::string& folder) {
        const double quota = quota_of(folder);
        if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
    };
    for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}) consider(folder);
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t path = line.find('/');
        if (path == std::string::npos) continue;
        const bool is_version1 = line.find(":cpu") != std::string::npos;
        for (std::string at = line.substr(path); at.size() > 1; at.resize(at.rfind('/')))
            consider((is_version1 ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup") + at);
    }
    return smallest;
}
#endif

}  // namespace

int usable_cores() {
    int cores = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = std::max(1, CPU_COUNT(&allowed));
    const double quota = cpu_quota();
    if (quota > 0) cores = std::min(cores, std::max(1, int(quota + 0.999)));
#endif
    return cores;
}

struct Pool::Crew {
    using Work = std::function<void(int)>;

    std::mutex lock;
    std::condition_variable work_came, all_done;
    const Work* work = nullptr;
    std::atomic<uint64_t> n_jobs{0};
    int n_working = 0;
    bool is_over = false;
    std::exception_ptr failure;
    std::vector<std::thread> threads;

    explicit Crew(int n_threads) {
        try {
            for (int member = 1; member < n_threads; ++member) threads.emplace_back([this, member] { serve(member); });
        } catch (const std::exception& error) {
            const std::string begun = std::to_string(threads.size() + 1), wanted = std::to_string(n_threads);
            dismiss();
            throw std::runtime_error("only " + begun + " of " + wanted + " threads could be started (" + error.what() +
                                     "); ask for fewer threads, or raise this process's limits");
        }
    }

    ~Crew() { dismiss(); }

    void dismiss() {
        {
            std::lock_guard<std::mutex> guard(lock);
            is_over = true;
        }
        work_came.notify_all();
        for (std::thread& thread : threads) thread.join();
    }

    void serve(int member) {
        uint64_t n_seen = 0;
        for (;;) {
            look_out(n_seen);
            const Work* mine;
            {
                std::unique_lock<std::mutex> guard(lock);
                work_came.wait(guard, [&] { return is_over || n_jobs.load() != n_seen; });
                if (is_over) return;
                n_seen = n_jobs.load();
                mine = work;
            }
            attempt(*mine, member);
            std::lock_guard<std::mutex> guard(lock);
            if (--n_working == 0) all_done.notify_one();
        }
    }

    // A short watch before going to sleep: the next text of a stream of single ones comes soon, and
    // waking a sleeping thread takes longer than a layer.
    void look_out(uint64_t n_seen) const {
        using clock = std::chrono::steady_clock;
        const auto until = clock::now() + std::chrono::microseconds(100);
        while (n_jobs.load(std::memory_order_relaxed) == n_seen && clock::now() < until)
            for (int i = 0; i < 50; ++i) {
#if defined(__x86_64__)
                __builtin_ia32_pause();
#endif
            }
    }

    void attempt(const Work& mine, int member) {
        try {
            mine(member);
        } catch (...) {
            std::lock_guard<std::mutex> guard(lock);
            if (!failure) failure = std::current_exception();
        }
    }

    void run(const Work& given) {
        {
            std::lock_guard<std::mutex> guard(lock);
            work = &given;
            failure = nullptr;
            n_working = int(threads.size());
            n_jobs.fetch_add(1);
        }
        work_came.notify_all();
        attempt(given, 0);
        std::unique_lock<std::mutex> guard(lock);
        all_done.wait(guard, [&] { return n_working == 0; });
        if (failure) std::rethrow_exception(failure);
    }
};

struct Pool::Shift {
    bool has_begun = false;
    std::mutex one_at_a_time;
    std::unique_ptr<Crew> crew;
};

Pool::Pool(int n_threads, std::function<void()> on_fork) : n_threads(std::max(1, n_threads)), on_fork(std::move(on_fork)) {}

Pool::~Pool() = default;

void Pool::run(const std::function<void(int)>& work) {
    Shift& shift = shifts.mine();
    std::lock_guard<std::mutex> guard(shift.one_at_a_time);
    if (!shift.has_begun && on_fork && getpid() != born) on_fork();
    shift.has_begun = true;
    if (n_threads == 1) return work(0);
    if (!shift.crew) shift.crew = std::make_unique<Crew>(n_threads);
    shift.crew->run(work);
}

}  // namespace gemel
