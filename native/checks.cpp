// The engine without Python, to be run under sanitizers: every kernel, precision and number of threads must give
// the same bits for a text however it is batched, and odd input must give errors. Prints what it did; exits 1 on a
// difference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>

#include "engine.hpp"
#include "pairs.hpp"
#include "wordpiece.hpp"

using namespace gemel;

namespace {

constexpr int hidden = 40, n_heads = 2, head_dim = 32, inner = 72, n_positions = 70, vocabulary = 30, n_layers = 2;
std::mt19937 generator(7);

std::vector<float> noise(size_t n, float size = 0.3f) {
    std::normal_distribution<float> normal(0.0f, size);
    std::vector<float> values(n);
    for (float& value : values) value = normal(generator);
    return values;
}

struct Weights {
    std::vector<float> words = noise(vocabulary * hidden), positions = noise(n_positions * hidden);
    std::vector<float> types = noise(2 * hidden), gain = noise(hidden, 1.0f), shift = noise(hidden);
    std::vector<float> qkv = noise(3 * n_heads * head_dim * hidden), out = noise(hidden * n_heads * head_dim);
    std::vector<float> up = noise(inner * hidden), down = noise(hidden * inner), bias = noise(3 * n_heads * head_dim);
    std::vector<float> distances = noise(n_heads * (2 * n_positions - 1)), dense = noise(8 * hidden);
};

Settings settings(bool is_int8, int tokens_at_once) {
    Settings made;
    made.hidden = hidden;
    made.n_heads = n_heads;
    made.head_dim = head_dim;
    made.n_positions = n_positions;
    made.is_int8 = is_int8;
    made.tokens_at_once = tokens_at_once;
    made.n_down_groups = 2;
    return made;
}

void fill(Engine& engine, const Weights& w) {
    const Norm norm{w.gain.data(), w.shift.data(), hidden};
    engine.set_embeddings({w.words.data(), vocabulary, hidden}, {w.positions.data(), n_positions, hidden},
                          {w.types.data(), 2, hidden}, norm);
    engine.set_distance_bias({w.distances.data(), n_heads, 2 * n_positions - 1});
    for (int layer = 0; layer < n_layers; ++layer)
        engine.add_layer({{w.qkv.data(), w.bias.data(), 3 * n_heads * head_dim, hidden},
                          {w.out.data(), nullptr, hidden, n_heads * head_dim},
                          {w.up.data(), nullptr, inner, hidden},
                          {w.down.data(), nullptr, hidden, inner},
                          norm,
                          norm});
    engine.add_dense({w.dense.data(), nullptr, 8, hidden}, TailActivation::tanh, false, nullptr);
    engine.add_normalisation();
}

struct Corpus {
    std::vector<int32_t> ids;
    std::vector<int64_t> starts = {0};

    explicit Corpus(int n_texts) {
        for (int t = 0; t < n_texts; ++t) {
            const int n = 1 + int(generator() % n_positions);
            for (int i = 0; i < n; ++i) ids.push_back(int32_t(generator() % vocabulary));
            starts.push_back(int64_t(ids.size()));
        }
    }
    Texts texts() const { return {ids.data(), nullptr, starts.data(), int64_t(starts.size()) - 1, int64_t(ids.size())}; }
};

Pooling pooling() {
    Pooling made;
    made.modes = {PoolingMode::mean};
    return made;
}

std::vector<float> encoded(Engine& engine, const Corpus& corpus) {
    std::vector<float> out((corpus.starts.size() - 1) * 8);
    engine.encode(corpus.texts(), pooling(), Result::finished, out.data(), 8);
    return out;
}

int check_bits(const Weights& weights) {
    int n_differences = 0;
    const Corpus corpus(40);
    for (const std::string& name : instruction_sets())
        for (const bool is_int8 : {true, false}) {
            std::vector<float> first;
            for (const int n_threads : {1, 2, 5})
                for (const int tokens_at_once : {1, 33, 5000}) {
                    Engine engine(settings(is_int8, tokens_at_once), kernels_named(name), n_threads);
                    fill(engine, weights);
                    const std::vector<float> out = encoded(engine, corpus);
                    if (first.empty()) first = out;
                    if (std::memcmp(first.data(), out.data(), out.size() * sizeof(float)) != 0) {
                        std::printf("%s differs: int8 %d, %d threads, %d tokens\n", name.c_str(), is_int8, n_threads, tokens_at_once);
                        ++n_differences;
                    }
                }
            std::printf("%s, %s: the same bits in nine ways\n", name.c_str(), is_int8 ? "int8" : "float32");
        }
    return n_differences;
}

// Random lengths, ids and sizes: an answer or std::invalid_argument, nothing else.
void check_boundary(const Weights& weights) {
    Engine engine(settings(true, 0), kernels_named(""), 2);
    fill(engine, weights);
    int n_refused = 0;
    for (int round = 0; round < 3000; ++round) {
        Corpus corpus(int(generator() % 4));
        if (!corpus.ids.empty() && generator() % 2) corpus.ids[generator() % corpus.ids.size()] = int32_t(generator()) - 5;
        if (generator() % 2) corpus.starts[generator() % corpus.starts.size()] = int64_t(generator()) - 100;
        const int dim = int(generator() % 12);
        std::vector<float> out(corpus.starts.size() * size_t(dim) + 1);
        try {
            engine.encode(corpus.texts(), pooling(), Result::finished, out.data(), dim);
        } catch (const std::invalid_argument&) {
            ++n_refused;
        }
    }
    std::printf("3,000 odd inputs: %d refused\n", n_refused);
}

// The directions of the first numbers of a row.
std::shared_ptr<const Axes> first_axes(int dim, int n_axes) {
    std::vector<float> directions(size_t(n_axes) * size_t(dim), 0.0f);
    for (int axis = 0; axis < n_axes; ++axis) directions[size_t(axis * dim + axis)] = 1.0f;
    return std::make_shared<const Axes>(directions.data(), n_axes, dim);
}

// The same best pairs and hits from every kernel, however many threads, with or without kept blocks and axes.
int check_pairs() {
    constexpr int64_t n = 8300, n_compared = 200;  // more than a block; the rows of its edge are compared, too
    constexpr int dim = 13, k = 3;
    int n_differences = 0;
    std::vector<float> rows = noise(n * dim, 1.0f);
    for (int64_t row = 0; row < n; row += 7) std::memcpy(&rows[size_t(row * dim)], rows.data(), dim * sizeof(float));
    for (const bool is_cosine : {true, false}) {
        std::optional<PairColumns> first;
        std::vector<int64_t> first_ids;
        for (const std::string& name : instruction_sets())
            for (const int n_threads : {1, 3}) {
                PackedRows packed(rows.data(), n, dim, is_cosine, kernels_named(name), n_threads, n_threads == 1 ? 0 : 1 << 30);
                BestPairs best(400, -1e30f);
                for (const int64_t begin : {int64_t(0), n - n_compared}) packed.best(packed, begin, begin + n_compared, best);
                std::vector<int64_t> ids(40 * k);
                std::vector<float> scores(40 * k);
                packed.search({rows.data(), 40, k, nullptr, 0, ids.data(), scores.data()});
                const PairColumns found = best.sorted();
                std::vector<Pair> above;
                if (packed.above(packed, 0, n_compared, found.score[99], 1 << 20, above) && above.size() < 1) ++n_differences;
                if (!first) {
                    first = found;
                    first_ids = ids;
                }
                n_differences += ids != first_ids;
                std::vector<Pair> again;
                packed.look_along(first_axes(dim, 5));
                packed.above(packed, 0, n_compared, found.score[99], 1 << 20, again);
                n_differences += again.size() != above.size();
                for (size_t i = 0; i < std::min(again.size(), above.size()); ++i)
                    n_differences += again[i].first != above[i].first || again[i].second != above[i].second;
                n_differences += found.first != first->first || found.second != first->second || found.score != first->score;
            }
    }
    std::printf("pairs: %d differences\n", n_differences);
    return n_differences;
}

// So many pairs that two threads sort them, many of them with equal scores.
int check_order() {
    constexpr size_t n = 150'000;
    std::vector<Pair> pairs;
    for (const float x : noise(n, 1.0f)) {
        const auto at = uint32_t(pairs.size());
        pairs.push_back({at * 7919 % 1000, at, std::round(x * 500.0f) / 500.0f});
    }
    BestPairs best(n, -10.0f);
    std::vector<Pair> waiting = pairs;
    best.merge(waiting, 10.0f);
    std::sort(pairs.begin(), pairs.end(), comes_before);
    const PairColumns found = best.sorted();
    int n_differences = found.first.size() != n;
    for (size_t i = 0; i < found.first.size(); ++i)
        n_differences += found.first[i] != pairs[i].first || found.second[i] != pairs[i].second || found.score[i] != pairs[i].score;
    std::printf("order: %d differences\n", n_differences);
    return n_differences;
}

void check_wordpiece() {
    const WordPiece tokenizer({"[UNK]", "a", "b", "##a", "##b", "ab", "##ba", ".", "\xe2\x80\x94"}, 0, true, "[", 20);
    size_t n_ids = 0, n_unread = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string text(generator() % 60, ' ');
        for (char& byte : text) byte = "abAB. \xe2\x80\x94[\n\x01"[generator() % 13];
        if (generator() % 4 == 0 && !text.empty()) text[generator() % text.size()] = char(generator());
        const TokenisedTexts out = tokenizer.encode({text, ""}, {1}, {2}, 1 + int(generator() % 30));
        n_ids += out.ids.size();
        n_unread += out.unread.size();
    }
    std::printf("3,000 odd texts: %zu ids, %zu unread\n", n_ids, n_unread);
}

}  // namespace

int main() {
    const Weights weights;
    const int n_differences = check_bits(weights) + check_pairs() + check_order();
    check_boundary(weights);
    check_wordpiece();
    return n_differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
