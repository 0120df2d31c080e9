#include "best_pairs.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "pool.hpp"

namespace gemel {
namespace {

constexpr int bits = 12, buckets = 1 << bits;
constexpr size_t worth_two_threads = 100'000;

// A number that grows where the score falls, for scores that are no NaN.
uint32_t descending(float score) {
    const float without_negative_zero = score + 0.0f;
    uint32_t own;
    std::memcpy(&own, &without_negative_zero, 4);
    return own & 0x80000000u ? own : ~own & 0x7fffffffu;
}

// What is sorted instead of pairs: a number for the score, and the place of the pair. It is two thirds of a pair, and
// compared at once.
using Key = uint64_t;

uint32_t rank_of(Key key) { return uint32_t(key >> 32); }
size_t place_of(Key key) { return size_t(uint32_t(key)); }

// By score alone, from the lowest bits on. Of scores that are all near each other few bits differ, and two passes do.
void sort_by_rank(std::vector<Key>& keys) {
    const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
    const uint32_t lowest = rank_of(*least), range = rank_of(*most) - lowest;
    std::vector<Key> sorted(keys.size());
    for (int shift = 0; shift < 32 && range >> shift > 0; shift += bits) {
        const auto bucket = [=](Key key) { return (rank_of(key) - lowest) >> shift & (buckets - 1); };
        std::vector<size_t> at(buckets, 0);
        for (const Key key : keys) ++at[bucket(key)];
        size_t before = 0;
        for (size_t& own : at) before += std::exchange(own, before);
        for (const Key key : keys) sorted[at[bucket(key)]++] = key;
        keys.swap(sorted);
    }
}

// The same with equal scores by index.
void sort(std::vector<Key>& keys, const std::vector<Pair>& pairs) {
    if (keys.empty()) return;
    sort_by_rank(keys);
    const auto is_earlier = [&](Key a, Key b) { return comes_before(pairs[place_of(a)], pairs[place_of(b)]); };
    for (auto equal = keys.begin(); equal != keys.end();) {
        const auto end = std::find_if(equal + 1, keys.end(), [=](Key key) { return rank_of(key) != rank_of(*equal); });
        if (end - equal > 1) std::sort(equal, end, is_earlier);
        equal = end;
    }
}

// The rank that about half of the keys are below.
uint32_t middle_of(const std::vector<Key>& keys) {
    constexpr size_t n_looked_at = 1001;
    std::vector<uint32_t> some;
    for (size_t i = 0; i < n_looked_at; ++i) some.push_back(rank_of(keys[i * (keys.size() - 1) / (n_looked_at - 1)]));
    std::nth_element(some.begin(), some.begin() + n_looked_at / 2, some.end());
    return some[n_looked_at / 2];
}

}  // namespace

BestPairs::BestPairs(size_t limit, float at_least)
    : limit(limit), current_floor(at_least), last_first(std::numeric_limits<int64_t>::max()) {}

void BestPairs::merge(std::vector<Pair>& waiting, float ceiling) {
    const std::lock_guard<std::mutex> guard(lock);
    const float floor = current_floor;
    for (const Pair& pair : waiting)
        if (pair.score >= floor) pairs.push_back(pair);
    waiting.clear();
    if (pairs.size() < 2 * limit) return;
    cut();
    const Pair& last = pairs.back();
    current_floor = last.score;
    if (last.score >= ceiling) last_first = last.first;
}

// Leaves the best, the last of them at the end.
void BestPairs::cut() {
    if (pairs.size() < limit) return;
    const auto last = pairs.begin() + std::ptrdiff_t(limit) - 1;
    std::nth_element(pairs.begin(), last, pairs.end(), comes_before);
    pairs.resize(limit);
}

PairColumns BestPairs::sorted(int most_threads) {
    const std::lock_guard<std::mutex> guard(lock);
    std::vector<Key> keys(pairs.size()), rest;  // all of them: to choose the best first takes longer
    for (size_t i = 0; i < pairs.size(); ++i) keys[i] = Key(descending(pairs[i].score)) << 32 | i;
    const int n_parts = pairs.size() < worth_two_threads ? 1 : std::clamp(most_threads, 1, std::min(2, usable_cores()));
    if (n_parts == 2) {
        const uint32_t middle = middle_of(keys);
        const auto half = std::partition(keys.begin(), keys.end(), [=](Key key) { return rank_of(key) < middle; });
        rest.assign(half, keys.end());
        keys.erase(half, keys.end());
    }
    const size_t n_better = keys.size();
    PairColumns ordered(std::min(pairs.size(), limit));
    Pool(n_parts).run([&](int part) {
        std::vector<Key>& own = part ? rest : keys;
        const size_t from = part ? n_better : 0;
        sort(own, pairs);
        for (size_t i = 0; i < own.size() && from + i < limit; ++i) ordered.put(from + i, pairs[place_of(own[i])]);
    });
    return ordered;
}

}  // namespace gemel
