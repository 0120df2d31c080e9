// A model ready to turn token ids into vectors: its weights, its threads and their working memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model.hpp"
#include "pool.hpp"
#include "tail.hpp"
#include "weights.hpp"

namespace gemel {

// The kernels of that name, or the best that run here for an empty one; throws std::invalid_argument.
const Kernels& kernels_named(const std::string& name);
// The names of all kernels whose instructions this machine executes, the best last.
std::vector<std::string> instruction_sets();

struct Settings {
    int hidden = 0, n_heads = 0, head_dim = 0;
    int n_positions = 0, first_position = 0;
    Activation activation = Activation::gelu;
    float epsilon = 1e-12f;
    bool is_int8 = true;
    int tokens_at_once = 0;  // of a micro-batch; 0: as many as the cache holds
    int n_down_groups = 1;  // groups of the widest product, where the error of int8 concentrates
};

struct Table {
    const float* rows = nullptr;
    int n_rows = 0, dim = 0;
};

struct Norm {
    const float* gain;
    const float* shift;
    int dim;
};

struct LayerWeights {
    Matrix query_key_value, attention_output, up, down;
    Norm after_attention, after_feed_forward;
};

// Token ids of texts, laid end to end.
struct Texts {
    const int32_t* ids;
    const int32_t* types;  // or null
    const int64_t* starts;
    int64_t n_texts, n_ids;
};

enum class Result { tokens, pooled, finished };

using GoesOn = std::function<bool()>;

class Engine {
  public:
    Engine(const Settings&, const Kernels&, int n_threads);

    // The word table stays where it is and must outlive the engine.
    void set_embeddings(const Table& words, const Table& positions, const Table& types, const Norm&);
    void set_projection(const Matrix&);
    void set_distance_bias(const Table& by_head);
    void add_layer(const LayerWeights&);
    void add_dense(const Matrix&, TailActivation, bool adds_input, const Matrix* residual);
    void add_normalisation();

    // Vectors of the texts into `out` (n, dim): the first numbers of each, or all tokens'. The caller's thread asks
    // `goes_on` between micro-batches; false comes back where the answer was no.
    bool encode(const Texts&, const Pooling&, Result, float* out, int dim, const GoesOn& goes_on = {});
    // The tail alone, of pooled vectors (n, pooled_dim).
    void finish(const float* pooled, int64_t n, int pooled_dim, float* out, int dim);

    int n_threads() const { return pool.size(); }
    const char* instruction_set() const { return kernels.name; }
    size_t n_bytes() const;
    int pooled_dim(const Pooling& pooling) const { return int(pooling.modes.size()) * model.hidden; }

  private:
    struct Workspace {
        Memory memory, attention_memory;
        size_t n_bytes = 0, n_attention_bytes = 0;
        Scratch scratch;
        AttentionScratch attention;
        std::vector<float> pooled;
    };

    void leave_workspaces();
    void check(const Texts&, const Pooling&, Result, int dim) const;
    void check_norm(const Norm&, int dim, const char* name) const;
    void check_shape(const Matrix&, int n_outputs, int n_inputs, const char* name) const;
    Linear linear(const Matrix&, int n_groups = 1);
    LayerNorm layer_norm(const Norm&);
    int tokens_at_once() const;
    std::vector<int64_t> batches(const Texts&) const;
    void prepare(Workspace&, int n_tokens) const;
    void prepare_attention(Workspace&, int longest) const;
    void write(const Batch&, Workspace&, const Pooling&, Result, float* out, int dim);
    bool encode_apart(const Texts&, const std::vector<int64_t>& bounds, const Pooling&, Result, float* out, int dim,
                      const GoesOn&);
    void encode_together(const Texts&, const std::vector<int64_t>& bounds, const Pooling&, Result, float* out, int dim);

    const Kernels& kernels;
    Store store;
    Model model;
    std::vector<Layer> layers;
    Linear projection;
    Tail tail;
    int n_down_groups, wanted_tokens;
    Pool pool;
    std::vector<Workspace> workspaces;
};

}  // namespace gemel
