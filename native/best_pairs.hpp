// The pairs with the highest scores, gathered by several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace gemel {

struct Pair {
    uint32_t first, second;
    float score;
};
constexpr int64_t most_rows = int64_t(1) << 32;
constexpr size_t most_pairs = size_t(1) << 31;  // twice as many are numbered in 32 bits while they are sorted

// Higher scores first, equal ones by index.
inline bool comes_before(const Pair& a, const Pair& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.first != b.first ? a.first < b.first : a.second < b.second;
}

// Pairs, column by column.
struct PairColumns {
    std::vector<int64_t> first, second;
    std::vector<float> score;

    explicit PairColumns(size_t n) : first(n), second(n), score(n) {}
    void put(size_t at, const Pair& pair) {
        first[at] = pair.first;
        second[at] = pair.second;
        score[at] = pair.score;
    }
};

// The best pairs so far.
class BestPairs {
  public:
    BestPairs(size_t limit, float at_least);
    float floor() const { return current_floor.load(std::memory_order_relaxed); }
    // Whether no pair that comes after this one can be among the best, however alike.
    bool is_too_late(int64_t first) const { return first > last_first.load(std::memory_order_relaxed); }
    void merge(std::vector<Pair>& waiting, float ceiling);
    // All of them, the best first.
    PairColumns sorted(int most_threads = 2);

  private:
    void cut();

    const size_t limit;
    std::atomic<float> current_floor;
    std::atomic<int64_t> last_first;
    std::mutex lock;
    std::vector<Pair> pairs;
};

}  // namespace gemel
