// A few threads that wait for work, and the thread that brings it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

namespace gemel {

// Cores that this process may really use: affinity and cgroup quota, not what the machine has.
int usable_cores();

class Pool {
  public:
    explicit Pool(int n_threads);
    ~Pool();
    int size() const { return n_threads; }

    // Calls work(member) once for each member at the same time; member 0 is the caller.
    // One at a time: a second caller waits. What a member throws is thrown here.
    void run(const std::function<void(int member)>& work);

  private:
    struct Crew;
    Crew& crew();

    const int n_threads;
    std::mutex one_at_a_time;
    std::unique_ptr<Crew> current;
};

}  // namespace gemel
