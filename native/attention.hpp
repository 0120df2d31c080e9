// Scaled dot-product attention of one sequence and one head, in float32.
#pragma once

namespace {

using namespace gemel;

// Where one head of one sequence stands. The query already carries 1 / sqrt(head_dim) and log2(e).
struct Head {
    const float* query;
    const float* value;
    float* out;
    int64_t stride, out_stride;
    int n_tokens, head_dim;
    const float* bias;  // by key minus query, the middle at distance 0; or null
};

constexpr int block = 16;  // keys are laid out in blocks, whatever the lanes

inline void transpose_keys(const float* key, int64_t stride, int n_padded, int head_dim, float* keys) {
    for (int k = 0; k < n_padded; k += block)
        for (int d = 0; d < head_dim; d += block)
            simd::transpose(key + k * stride + d, stride, keys + int64_t(d) * n_padded + k, n_padded);
}

template <int Queries, int Vectors>
void score(const Head& head, int query, const float* keys, int n_padded, int key, float* scores) {
    simd::Floats sums[Queries][Vectors];
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::all(0.0f);
    for (int d = 0; d < head.head_dim; ++d) {
        simd::Floats columns[Vectors];
        for (int v = 0; v < Vectors; ++v) columns[v] = simd::load(keys + int64_t(d) * n_padded + key + v * simd::lanes);
        for (int q = 0; q < Queries; ++q) {
            const simd::Floats x = simd::all(head.query[(query + q) * head.stride + d]);
            for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::fma(x, columns[v], sums[q][v]);
        }
    }
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v) simd::store(scores + int64_t(q) * n_padded + key + v * simd::lanes, sums[q][v]);
}

// Scores into weights that are not yet divided by their sum, which is returned.
inline float weigh(const Head& head, int query, float* scores, int n_padded) {
    const int n = head.n_tokens, last = n - simd::lanes;
    const simd::Floats nothing = simd::all(-__builtin_inff());
    simd::Floats top = nothing;
    for (int k = 0; k < n_padded; k += simd::lanes) {
        simd::Floats x = simd::load(scores + k);
        if (head.bias) x = x + simd::load(head.bias - query + k);
        if (k > last) x = simd::first(n - k < 0 ? 0 : n - k, x, nothing);
        simd::store(scores + k, x);
        top = simd::larger(top, x);
    }
    const simd::Floats highest = simd::all(simd::largest(top));
    simd::Floats total = simd::all(0.0f);
    for (int k = 0; k < n_padded; k += simd::lanes) {
        simd::Floats weight = simd::exp2(simd::load(scores + k) - highest);
        if (k > last) weight = simd::first(n - k < 0 ? 0 : n - k, weight, simd::all(0.0f));
        simd::store(scores + k, weight);
        total = total + weight;
    }
    return simd::sum(total);
}

template <int Queries, int Vectors>
void mix(const Head& head, int query, const float* weights, int n_padded, const float* shares, int column) {
    simd::Floats sums[Queries][Vectors];
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::all(0.0f);
    for (int k = 0; k < head.n_tokens; ++k) {
        simd::Floats row[Vectors];
        for (int v = 0; v < Vectors; ++v) row[v] = simd::load(head.value + k * head.stride + column + v * simd::lanes);
        for (int q = 0; q < Queries; ++q) {
            const simd::Floats weight = simd::all(weights[int64_t(q) * n_padded + k]);
            for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::fma(weight, row[v], sums[q][v]);
        }
    }
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v)
            simd::store(head.out + (query + q) * head.out_stride + column + v * simd::lanes, sums[q][v] * simd::all(shares[q]));
}

template <int Queries>
void attend_some(const Head& head, int query, const float* keys, int n_padded, float* scores) {
    constexpr int two = 2 * simd::lanes;
    int key = 0;
    for (; key + two <= n_padded; key += two) score<Queries, 2>(head, query, keys, n_padded, key, scores);
    for (; key < n_padded; key += simd::lanes) score<Queries, 1>(head, query, keys, n_padded, key, scores);
    float shares[Queries];
    for (int q = 0; q < Queries; ++q) shares[q] = 1.0f / weigh(head, query + q, scores + int64_t(q) * n_padded, n_padded);
    int column = 0;
    for (; column + two <= head.head_dim; column += two) mix<Queries, 2>(head, query, scores, n_padded, shares, column);
    for (; column < head.head_dim; column += simd::lanes) mix<Queries, 1>(head, query, scores, n_padded, shares, column);
}

template <int Queries>
void attend_up_to(const Head& head, Span queries, const float* keys, int n_padded, float* scores) {
    if constexpr (Queries > 1) {
        if (queries.end - queries.begin < Queries)
            return attend_up_to<Queries - 1>(head, queries, keys, n_padded, scores);
    }
    attend_some<Queries>(head, queries.begin, keys, n_padded, scores);
}

inline void attend(const Head& head, const float* key, const AttentionScratch& scratch) {
    const int n = head.n_tokens, n_padded = rounded_up(n, block);
    transpose_keys(key, head.stride, n_padded, head.head_dim, scratch.keys);
    // Blocks of nearly the same size: two queries left over would take as long as eight.
    const int n_blocks = (n + simd::attention_rows - 1) / simd::attention_rows;
    for (int b = 0; b < n_blocks; ++b) {
        const Span queries = share(n, b, n_blocks);
        attend_up_to<simd::attention_rows>(head, queries, scratch.keys, n_padded, scratch.scores);
    }
}

}  // namespace
