// Scaled dot-product attention of one sequence and one head, in float32.
#pragma once

namespace {

using namespace gemel;

// Where one head of one sequence stands. The query already carries 1 / sqrt(head_dim) and log2(e).
struct Head {
    const float* query;
    const float* key;
    const float* value;
    float* out;
    int64_t stride, out_stride;
    int n_tokens, head_dim;
    const float* bias;  // by query minus key, the middle at distance 0; or null
};

constexpr int block = 16;  // queries are taken in blocks, whatever the lanes: one query a lane

// Queries side by side (head_dim, width), so that no sum, no maximum and no mask goes across lanes.
inline void transpose_queries(const Head& head, int query, int width, float* queries) {
    for (int q = 0; q < width; q += block)
        for (int d = 0; d < head.head_dim; d += block)
            simd::transpose(head.query + (query + q) * head.stride + d, head.stride, queries + d * width + q, width);
}

// The scores of a few keys, (key, width); `top` becomes the highest of each query.
template <int Keys, int Vectors>
void score(const Head& head, int query, int key, const float* queries, float* scores, simd::Floats* top) {
    constexpr int width = Vectors * simd::lanes;
    simd::Floats sums[Keys][Vectors];
    for (int k = 0; k < Keys; ++k)
        for (int v = 0; v < Vectors; ++v) sums[k][v] = simd::all(0.0f);
    const float* keys = head.key + key * head.stride;
    for (int d = 0; d < head.head_dim; ++d) {
        simd::Floats column[Vectors];
        for (int v = 0; v < Vectors; ++v) column[v] = simd::load(queries + d * width + v * simd::lanes);
        for (int k = 0; k < Keys; ++k) {
            const simd::Floats x = simd::all(keys[k * head.stride + d]);
            for (int v = 0; v < Vectors; ++v) sums[k][v] = simd::fma(x, column[v], sums[k][v]);
        }
    }
    for (int k = 0; k < Keys; ++k)
        for (int v = 0; v < Vectors; ++v) {
            simd::Floats x = sums[k][v];
            if (head.bias) x = x + simd::load(head.bias + query - (key + k) + v * simd::lanes);
            top[v] = simd::larger(top[v], x);
            simd::store(scores + int64_t(key + k) * width + v * simd::lanes, x);
        }
}

template <int Keys, int Vectors>
void score_up_to(const Head& head, int query, Span keys, const float* queries, float* scores, simd::Floats* top) {
    if constexpr (Keys > 1) {
        if (keys.end - keys.begin < Keys)
            return score_up_to<Keys - 1, Vectors>(head, query, keys, queries, scores, top);
    }
    score<Keys, Vectors>(head, query, keys.begin, queries, scores, top);
}

// Scores into weights that are not yet divided by their sum; `shares` is one over it.
template <int Vectors>
void weigh(int n_keys, const simd::Floats* top, float* scores, float* shares) {
    simd::Floats total[Vectors];
    for (int v = 0; v < Vectors; ++v) total[v] = simd::all(0.0f);
    for (int k = 0; k < n_keys; ++k)
        for (int v = 0; v < Vectors; ++v) {
            float* at = scores + (int64_t(k) * Vectors + v) * simd::lanes;
            const simd::Floats weight = simd::exp2(simd::load(at) - top[v]);
            simd::store(at, weight);
            total[v] = total[v] + weight;
        }
    for (int v = 0; v < Vectors; ++v) simd::store(shares + v * simd::lanes, simd::all(1.0f) / total[v]);
}

// The values of all keys by their weights, for a few queries and columns.
template <int Queries, int Vectors>
void mix(const Head& head, int query, const float* weights, int width, const float* shares, int column) {
    simd::Floats sums[Queries][Vectors];
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::all(0.0f);
    for (int k = 0; k < head.n_tokens; ++k) {
        simd::Floats row[Vectors];
        for (int v = 0; v < Vectors; ++v) row[v] = simd::load(head.value + k * head.stride + column + v * simd::lanes);
        for (int q = 0; q < Queries; ++q) {
            const simd::Floats weight = simd::all(weights[int64_t(k) * width + q]);
            for (int v = 0; v < Vectors; ++v) sums[q][v] = simd::fma(weight, row[v], sums[q][v]);
        }
    }
    for (int q = 0; q < Queries; ++q)
        for (int v = 0; v < Vectors; ++v)
            simd::store(head.out + (query + q) * head.out_stride + column + v * simd::lanes, sums[q][v] * simd::all(shares[q]));
}

template <int Queries>
void mix_up_to(const Head& head, Span queries, const float* weights, int width, const float* shares) {
    if constexpr (Queries > 1) {
        if (queries.end - queries.begin < Queries)
            return mix_up_to<Queries - 1>(head, queries, weights, width, shares);
    }
    constexpr int two = 2 * simd::lanes;
    int column = 0;
    for (; column + two <= head.head_dim; column += two)
        mix<Queries, 2>(head, queries.begin, weights, width, shares, column);
    for (; column < head.head_dim; column += simd::lanes)
        mix<Queries, 1>(head, queries.begin, weights, width, shares, column);
}

template <int Vectors>
void attend_block(const Head& head, int query, int n_queries, const AttentionScratch& scratch) {
    constexpr int width = Vectors * simd::lanes, at_once = simd::attention_rows;
    alignas(64) float shares[width];
    transpose_queries(head, query, width, scratch.queries);
    simd::Floats top[Vectors];
    for (int v = 0; v < Vectors; ++v) top[v] = simd::all(-__builtin_inff());
    // Parts of nearly the same size: two keys left over would take as long as eight.
    const int n_parts = (head.n_tokens + at_once - 1) / at_once;
    for (int p = 0; p < n_parts; ++p)
        score_up_to<at_once, Vectors>(head, query, share(head.n_tokens, p, n_parts), scratch.queries, scratch.scores, top);
    weigh<Vectors>(head.n_tokens, top, scratch.scores, shares);
    const int n_mixed = (n_queries + at_once - 1) / at_once;
    for (int m = 0; m < n_mixed; ++m) {
        const Span some = share(n_queries, m, n_mixed);
        mix_up_to<at_once>(head, {query + some.begin, query + some.end}, scratch.scores + some.begin, width, shares + some.begin);
    }
}

inline void attend(const Head& head, const AttentionScratch& scratch) {
    constexpr int narrow = block / simd::lanes, wide = simd::attention_queries / simd::lanes;
    for (int query = 0; query < head.n_tokens;) {
        const int left = head.n_tokens - query;
        if (left <= block || wide == narrow) {
            attend_block<narrow>(head, query, left < block ? left : block, scratch);
            query += block;
        } else {
            attend_block<wide>(head, query, left < wide * simd::lanes ? left : wide * simd::lanes, scratch);
            query += wide * simd::lanes;
        }
    }
}

}  // namespace
