// A few threads that wait for work, and the thread that brings it.
#pragma once

#include <functional>

#include "per_process.hpp"

namespace gemel {

// Cores that this process may really use: affinity and cgroup quota, not what the machine has.
int usable_cores();

class Pool {
  public:
    // `on_fork` is called in a forked child before its first work: what a thread of the parent was writing
    // when the child came into being may be half written there.
    explicit Pool(int n_threads, std::function<void()> on_fork = {});
    ~Pool();
    int size() const { return n_threads; }

    // Calls work(member) once for each member at the same time; member 0 is the caller.
    // One at a time: a second caller waits. What a member throws is thrown here.
    void run(const std::function<void(int member)>& work);

  private:
    struct Crew;
    struct Shift;

    const int n_threads;
    const std::function<void()> on_fork;
    const pid_t born = getpid();
    PerProcess<Shift> shifts;
};

}  // namespace gemel
