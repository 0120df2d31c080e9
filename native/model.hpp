// A transformer prepared for the forward pass: plain numbers, no library types, so that every
// instruction set's translation unit can include it without compiling shared inline code.
#pragma once

#include <cstdint>

#include "sieve.hpp"

namespace gemel {

constexpr int panel_width = 64;  // outputs that one tile of a matrix product computes
constexpr int row_alignment = 64;

constexpr int rounded_up(int value, int step) { return (value + step - 1) / step * step; }

enum class Activation { identity, gelu, gelu_tanh, relu, silu };

// y = W x + b. The outputs stand in panels of 64; in a panel the weights of four inputs (int8) or of
// one (float32) stand side by side, in the order in which a tile reads them.
struct Linear {
    int n_outputs = 0, n_inputs = 0;
    int n_panels = 0;
    int depth = 0;            // inputs, rounded up so that rows are aligned
    int n_groups = 1;         // int8: parts of the depth with scales of their own
    const int8_t* int8_panels = nullptr;    // (panel, depth / 4, 64, 4), or null
    const float* float_panels = nullptr;    // (panel, depth, 64), or null
    const float* scales = nullptr;          // (panel, group, 64)
    const float* sums = nullptr;            // (panel, 64): each output's sum of dequantised weights
    const float* bias = nullptr;            // (panel, 64)

    int width() const { return n_panels * panel_width; }
};

struct LayerNorm {
    const float* gain = nullptr;  // (hidden, rounded up), zero beyond the end
    const float* shift = nullptr;
};

struct Layer {
    Linear query_key_value, attention_output, up, down;
    LayerNorm after_attention, after_feed_forward;
};

struct Model {
    int hidden = 0;         // numbers a token
    int width = 0;          // the same, rounded up to whole panels: what a row of activations takes
    int n_heads = 0;
    int head_dim = 0;       // a multiple of 16; narrower heads are filled up with zeros
    int n_layers = 0;
    int n_positions = 0;    // longest sequence
    int first_position = 0; // row of the position table that the first token gets
    int vocabulary = 0, n_types = 0;
    int embedding_dim = 0;  // numbers a token in the tables; ELECTRA projects them to `hidden`
    Activation activation = Activation::gelu;
    float epsilon = 1e-12f;
    bool is_int8 = true;
    const float* words = nullptr;      // (vocabulary, embedding_dim), unaligned: mapped from the file
    const float* positions = nullptr;  // (positions, embedding_dim), or null
    const float* types = nullptr;      // (n_types, embedding_dim), or null
    LayerNorm after_embedding;
    const Linear* projection = nullptr;     // of the embeddings, or null
    const float* distance_bias = nullptr;   // (heads, 2 n_positions - 1): MPNet's, by query minus key
    const Layer* layers = nullptr;
};

// Token sequences laid end to end.
struct Batch {
    const int32_t* ids = nullptr;
    const int32_t* types = nullptr;   // or null: all of type 0
    const int64_t* starts = nullptr;  // (n_sequences + 1)
    int n_sequences = 0;

    int n_tokens() const { return int(starts[n_sequences] - starts[0]); }
    int longest() const {
        int64_t longest = 0;
        for (int s = 0; s < n_sequences; ++s)
            if (starts[s + 1] - starts[s] > longest) longest = starts[s + 1] - starts[s];
        return int(longest);
    }
};

// Where a batch is worked on; one for each thread, or one for a team of threads on one batch.
struct Scratch {
    float* tokens = nullptr;      // (tokens, width): the residual stream, and the result
    float* wide = nullptr;        // (tokens, widest): query, key and value; or the feed-forward layer
    float* context = nullptr;     // (tokens, heads x head_dim, rounded up)
    uint8_t* quantised = nullptr; // (tokens, widest)
    float* scale = nullptr;       // (groups, tokens): what a step of a quantised row is worth
    float* lowest = nullptr;      // (tokens): what its zero is worth
};

// What each member of a team needs for itself.
struct AttentionScratch {
    float* queries = nullptr;  // (head_dim, queries at once)
    float* scores = nullptr;   // (longest, queries at once)
};

constexpr int queries_at_once = 32;

// Threads that work on one batch together and wait for each other between steps.
struct Team {
    int size = 1;
    int arrived = 0;     // only touched by atomic operations
    int generation = 0;
    int sleeping = 0;

    void wait() {
        if (size == 1) return;
        const int before = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
        if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == size) {
            __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&generation, before + 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&sleeping, __ATOMIC_SEQ_CST)) wake();
            return;
        }
        for (int spins = 0; __atomic_load_n(&generation, __ATOMIC_ACQUIRE) == before; ++spins)
            if (spins > spins_before_sleeping) return sleep(before);
    }

    // The others come within microseconds, unless they have no core: then this one is better left to other work, and
    // who has slept is given one sooner than who has spun.
    static constexpr int spins_before_sleeping = 2000;
    void sleep(int before);
    void wake();
    static void yield();  // lets another thread have the core
};

struct Span {
    int begin, end;
};

// The member's share of n things.
inline Span share(int n, int member, int size) {
    return {int(int64_t(n) * member / size), int(int64_t(n) * (member + 1) / size)};
}

// Memory that will be needed soon, fetched bit by bit while something else is computed: many fetches at
// once would have to wait for each other.
struct Ahead {
    const char* at = nullptr;
    int64_t step = 0;

    void fetch() {
        __builtin_prefetch(at, 0, 2);
        __builtin_prefetch(at + step / 2, 0, 2);  // with few rows a step is longer than a cache line
        at += step;
    }
};

// What one instruction set offers. All of them compute the same int32 sums.
struct Kernels {
    const char* name;
    // Token ids into the last layer's token vectors, left in scratch.tokens.
    void (*forward)(const Model&, const Batch&, const Scratch&, const AttentionScratch&, Team&, int member);
    // rows (n, depth) in float32 into (n, width).
    void (*linear)(const Linear&, const float* rows, int n_rows, float* out);
    // Sums of products of unsigned rows (n, depth) and signed weights: (n, width), for the tests.
    void (*int8_sums)(const Linear&, const uint8_t* rows, int n_rows, int32_t* out);
    int tile_rows;  // of the bare tiles: these rows (n, stride) by one panel
    void (*int8_tile)(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth, int32_t* sums);
    void (*float_tile)(const float* rows, int64_t stride, const float* panel, int depth, float* sums);
    Sieve sieve;
};

const Kernels& portable_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx_vnni_kernels();
const Kernels& avx512_vnni_kernels();
#endif

}  // namespace gemel
