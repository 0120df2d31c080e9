// What belongs to one process.
//
// A forked child has none of its parent's threads, and a lock that one of them held would never open again, nor can
// what it was writing be trusted: the child leaves its parent's as it is and begins its own.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>

namespace gemel {

template <class T>
class PerProcess {
  public:
    PerProcess() : current(new Owned) {}
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;

    ~PerProcess() {
        const Owned* last = current.load();
        if (last->owner == getpid()) delete last;
    }

    T& mine() {
        Owned* present = current.load();
        if (present->owner == getpid()) return present->value;
        auto made = std::make_unique<Owned>();
        return (current.compare_exchange_strong(present, made.get()) ? made.release() : present)->value;
    }

  private:
    struct Owned {
        const pid_t owner = getpid();
        T value;
    };
    std::atomic<Owned*> current;
};

}  // namespace gemel
