#include "engine.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "cpu.hpp"

namespace gemel {
namespace {

constexpr size_t scratch_bytes = size_t(5) << 18;  // of a micro-batch: with the weights in use it fits into L2
constexpr int fewest_tokens = 64, most_tokens = 256;
constexpr int spare_rows = 16;  // keys are transposed in blocks, which may reach beyond the last token

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string shape(int rows, int columns) {
    return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
}

bool executes(const std::map<std::string, bool>& cpu, const char* feature) {
    const auto found = cpu.find(feature);
    return found != cpu.end() && found->second;
}

std::vector<const Kernels*> runnable_kernels() {
    const auto probed = probe_cpu();
    const std::map<std::string, bool> cpu(probed.begin(), probed.end());
    std::vector<const Kernels*> found = {&portable_kernels()};
#if defined(__x86_64__)
    const bool avx2 = executes(cpu, "avx2");
    if (avx2) found.push_back(&avx2_kernels());
    if (avx2 && executes_avx_vnni()) found.push_back(&avx_vnni_kernels());
    if (executes(cpu, "avx512_vnni")) found.push_back(&avx512_vnni_kernels());
#endif
    return found;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable_kernels()) names.push_back(kernels->name);
    return names;
}

const Kernels& kernels_named(const std::string& name) {
    const std::vector<const Kernels*> runnable = runnable_kernels();
    if (name.empty()) return *runnable.back();
    std::string known;
    for (const Kernels* kernels : runnable) {
        if (name == kernels->name) return *kernels;
        known += (known.empty() ? "" : ", ") + std::string(kernels->name);
    }
    refuse("the instruction set '" + name + "' does not run here; choose from " + known);
}

Engine::Engine(const Settings& settings, const Kernels& kernels, int n_threads)
    : kernels(kernels), n_down_groups(settings.n_down_groups), wanted_tokens(settings.tokens_at_once),
      pool(n_threads, [this] { leave_workspaces(); }), workspaces(pool.size()) {
    if (settings.hidden < 1 || settings.n_heads < 1 || settings.n_positions < 1 || settings.first_position < 0)
        refuse("hidden, n_heads and n_positions must be positive");
    if (settings.head_dim < 16 || settings.head_dim % 16) refuse("head_dim must be a multiple of 16");
    if (settings.hidden > 1 << 16 || settings.n_heads > 1 << 12 || settings.head_dim > 1 << 12)
        refuse("the model is wider than any that is known");
    if (settings.n_positions > 1 << 20) refuse("n_positions is larger than any that is known");
    if (settings.n_down_groups < 1 || settings.tokens_at_once < 0) refuse("n_down_groups must be positive");
    if (!(settings.epsilon >= 0.0f) || std::isinf(settings.epsilon)) refuse("epsilon must be a small number");
    model.hidden = settings.hidden;
    model.width = rounded_up(settings.hidden, panel_width);
    model.n_heads = settings.n_heads;
    model.head_dim = settings.head_dim;
    model.n_positions = settings.n_positions;
    model.first_position = settings.first_position;
    model.activation = settings.activation;
    model.epsilon = settings.epsilon;
    model.is_int8 = settings.is_int8;
}

// A forked child's are copies of what its parent's threads were writing: not even to be freed.
void Engine::leave_workspaces() {
    (void)new std::vector<Workspace>(std::exchange(workspaces, std::vector<Workspace>(pool.size())));
}

size_t Engine::n_bytes() const {
    size_t total = store.n_bytes();
    for (const Workspace& own : workspaces)
        total += own.n_bytes + own.n_attention_bytes + own.pooled.capacity() * sizeof(float);
    return total;
}

void Engine::check_shape(const Matrix& matrix, int n_outputs, int n_inputs, const char* name) const {
    if (!matrix.weights || matrix.n_outputs != n_outputs || matrix.n_inputs != n_inputs)
        refuse(std::string(name) + " has shape " + shape(matrix.n_outputs, matrix.n_inputs) + ", expected " +
               shape(n_outputs, n_inputs));
}

void Engine::check_norm(const Norm& norm, int dim, const char* name) const {
    if (!norm.gain || !norm.shift || norm.dim != dim)
        refuse(std::string(name) + " has " + std::to_string(norm.dim) + " numbers, expected " + std::to_string(dim));
}

Linear Engine::linear(const Matrix& matrix, int n_groups) {
    if (!model.is_int8) return float_linear(store, matrix);
    const int depth = rounded_up(matrix.n_inputs, row_alignment);
    return int8_linear(store, matrix, depth % (n_groups * row_alignment) == 0 ? n_groups : 1);
}

LayerNorm Engine::layer_norm(const Norm& norm) {
    const size_t room = size_t(rounded_up(norm.dim, row_alignment));
    return {store.copy(norm.gain, size_t(norm.dim), room), store.copy(norm.shift, size_t(norm.dim), room)};
}

void Engine::set_embeddings(const Table& words, const Table& positions, const Table& types, const Norm& norm) {
    if (!words.rows || words.n_rows < 1 || words.dim < 1) refuse("the word table is empty");
    if (positions.rows && positions.dim != words.dim) refuse("words and positions have vectors of different lengths");
    if (types.rows && (types.dim != words.dim || types.n_rows < 1)) refuse("the type table does not fit the words");
    if (positions.rows && positions.n_rows < model.first_position + model.n_positions)
        refuse("the position table has " + std::to_string(positions.n_rows) + " rows, expected " +
               std::to_string(model.first_position + model.n_positions));
    check_norm(norm, words.dim, "the embedding's LayerNorm");
    model.embedding_dim = words.dim;
    model.vocabulary = words.n_rows;
    model.n_types = types.n_rows;
    model.words = words.rows;
    const auto copied = [this](const Table& table) {
        const size_t n = size_t(table.n_rows) * table.dim;
        return table.rows ? store.copy(table.rows, n, n) : nullptr;
    };
    model.positions = copied(positions);
    model.types = copied(types);
    model.after_embedding = layer_norm(norm);
}

void Engine::set_projection(const Matrix& matrix) {
    check_shape(matrix, model.hidden, model.embedding_dim, "the embedding's projection");
    projection = float_linear(store, matrix);
    model.projection = &projection;
}

void Engine::set_distance_bias(const Table& by_head) {
    const int n = 2 * model.n_positions - 1, room = 2 * model.n_positions + spare_rows;
    if (!by_head.rows || by_head.n_rows != model.n_heads || by_head.dim != n)
        refuse("the distance bias has shape " + shape(by_head.n_rows, by_head.dim) + ", expected " +
               shape(model.n_heads, n));
    float* copy = store.take<float>(size_t(model.n_heads) * room);
    std::fill_n(copy, size_t(model.n_heads) * room, 0.0f);
    for (int h = 0; h < model.n_heads; ++h)
        std::reverse_copy(by_head.rows + size_t(h) * n, by_head.rows + size_t(h + 1) * n, copy + size_t(h) * room);
    model.distance_bias = copy;
}

void Engine::add_layer(const LayerWeights& given) {
    const int hidden = model.hidden, heads = model.n_heads * model.head_dim, inner = given.up.n_outputs;
    if (inner < 1) refuse("the feed-forward layer is empty");
    check_shape(given.query_key_value, 3 * heads, hidden, "query, key and value");
    check_shape(given.attention_output, hidden, heads, "the attention's output");
    check_shape(given.up, inner, hidden, "the feed-forward layer's first matrix");
    check_shape(given.down, hidden, inner, "the feed-forward layer's second matrix");
    check_norm(given.after_attention, hidden, "the attention's LayerNorm");
    check_norm(given.after_feed_forward, hidden, "the feed-forward layer's LayerNorm");
    Layer layer;
    layer.query_key_value = linear(given.query_key_value);
    layer.attention_output = linear(given.attention_output);
    layer.up = linear(given.up);
    layer.down = linear(given.down, n_down_groups);
    layer.after_attention = layer_norm(given.after_attention);
    layer.after_feed_forward = layer_norm(given.after_feed_forward);
    layers.push_back(layer);
    model.layers = layers.data();
    model.n_layers = int(layers.size());
}

void Engine::add_dense(const Matrix& matrix, TailActivation activation, bool adds_input, const Matrix* residual) {
    if (!matrix.weights || matrix.n_outputs < 1 || matrix.n_inputs < 1) refuse("a Dense layer is empty");
    const Linear dense = float_linear(store, matrix);
    if (!residual) return tail.add_dense(dense, activation, adds_input, nullptr);
    const Linear added = float_linear(store, *residual);
    tail.add_dense(dense, activation, adds_input, &added);
}

void Engine::add_normalisation() { tail.add_normalisation(); }

void Engine::check(const Texts& texts, const Pooling& pooling, Result result, int dim) const {
    if (!model.words || layers.empty()) refuse("the engine has no weights yet");
    if (model.embedding_dim != model.hidden && !model.projection) refuse("the embeddings need a projection");
    const auto whole = [&] { return result == Result::pooled ? pooled_dim(pooling) : tail.output_dim(pooled_dim(pooling)); };
    const int full = result == Result::tokens ? model.hidden : whole();
    if (dim < 1 || dim > full) refuse("vectors of " + std::to_string(full) + " numbers cannot fill rows of " + std::to_string(dim));
    if (pooling.n_prompt < 0 || pooling.n_first < 0 || pooling.n_last < 0) refuse("tokens to skip cannot be negative");
    if (texts.starts[0] != 0 || texts.starts[texts.n_texts] != texts.n_ids) refuse("the texts do not cover the ids");
    for (int64_t t = 0; t < texts.n_texts; ++t) {
        if (texts.starts[t + 1] < 0 || texts.starts[t + 1] > texts.n_ids) refuse("the texts reach beyond the ids");
        const int64_t n = texts.starts[t + 1] - texts.starts[t];
        if (n < 1 || n > model.n_positions)
            refuse("text " + std::to_string(t) + " has " + std::to_string(n) + " tokens; this model reads 1 to " +
                   std::to_string(model.n_positions));
    }
    for (int64_t i = 0; i < texts.n_ids; ++i)
        if (texts.ids[i] < 0 || texts.ids[i] >= model.vocabulary)
            refuse("token id " + std::to_string(texts.ids[i]) + " is not in the vocabulary of " +
                   std::to_string(model.vocabulary));
    if (texts.types && model.types)
        for (int64_t i = 0; i < texts.n_ids; ++i)
            if (texts.types[i] < 0 || texts.types[i] >= model.n_types)
                refuse("token type " + std::to_string(texts.types[i]) + " is unknown; this model has " +
                       std::to_string(model.n_types));
}

int Engine::tokens_at_once() const {
    if (wanted_tokens) return wanted_tokens;
    const Layer& layer = layers.front();
    const int widest = std::max(layer.query_key_value.width(), layer.up.width());
    const size_t a_token = size_t(model.width + widest + layer.attention_output.depth) * sizeof(float) + size_t(widest);
    return std::clamp(int(scratch_bytes / a_token), fewest_tokens, most_tokens);
}

// Where each micro-batch begins: as many whole texts as the token budget holds, at least one; among
// nearly full ones, the one that leaves the fewest rows of the last tile empty.
std::vector<int64_t> Engine::batches(const Texts& texts) const {
    const int64_t budget = tokens_at_once(), nearly = budget * 3 / 4, tile = kernels.tile_rows;
    std::vector<int64_t> bounds = {0};
    while (bounds.back() < texts.n_texts) {
        const int64_t first = bounds.back();
        int64_t chosen = first + 1, fewest = tile;
        for (int64_t end = first + 1; end <= texts.n_texts; ++end) {
            const int64_t n_tokens = texts.starts[end] - texts.starts[first], empty = (tile - n_tokens % tile) % tile;
            if (n_tokens > budget) break;
            if (n_tokens < nearly) chosen = end;
            else if (empty <= fewest) chosen = end, fewest = empty;
        }
        bounds.push_back(chosen);
    }
    return bounds;
}

void Engine::prepare(Workspace& own, int n_tokens) const {
    int widest = model.width, context = model.projection ? model.projection->depth : 0;
    int wide = 0;
    for (const Layer& layer : layers) {
        wide = std::max({wide, layer.query_key_value.width(), layer.up.width()});
        context = std::max(context, layer.attention_output.depth);
    }
    widest = std::max({widest, wide, context});
    const size_t rows = size_t(n_tokens) + spare_rows;
    const size_t sizes[] = {rows * model.width * 4, rows * wide * 4, rows * context * 4, rows * widest, rows * n_down_groups * 4, rows * 4};
    size_t total = 0;
    for (size_t size : sizes) total += (size + 63) / 64 * 64;
    if (own.n_bytes < total) {
        own.memory = zeroed_memory(total);
        own.n_bytes = total;
    }
    char* at = static_cast<char*>(own.memory.get());
    const auto next = [&](size_t size) {
        char* part = at;
        at += (size + 63) / 64 * 64;
        return part;
    };
    own.scratch.tokens = reinterpret_cast<float*>(next(sizes[0]));
    own.scratch.wide = reinterpret_cast<float*>(next(sizes[1]));
    own.scratch.context = reinterpret_cast<float*>(next(sizes[2]));
    own.scratch.quantised = reinterpret_cast<uint8_t*>(next(sizes[3]));
    own.scratch.scale = reinterpret_cast<float*>(next(sizes[4]));
    own.scratch.lowest = reinterpret_cast<float*>(next(sizes[5]));
}

void Engine::prepare_attention(Workspace& own, int longest) const {
    const size_t total = (size_t(model.head_dim) + longest) * queries_at_once * sizeof(float);
    if (own.n_attention_bytes < total) {
        own.attention_memory = zeroed_memory(total);
        own.n_attention_bytes = total;
    }
    own.attention.queries = static_cast<float*>(own.attention_memory.get());
    own.attention.scores = own.attention.queries + size_t(model.head_dim) * queries_at_once;
}

void Engine::write(const Batch& batch, Workspace& own, const Pooling& pooling, Result result, float* out, int dim) {
    const float* tokens = own.scratch.tokens;
    if (result == Result::tokens) {
        for (int t = 0; t < batch.n_tokens(); ++t)
            std::copy_n(tokens + int64_t(t) * model.width, dim, out + (batch.starts[0] + t) * dim);
        return;
    }
    int width = pooled_dim(pooling);
    own.pooled.resize(size_t(batch.n_sequences) * width);
    for (int s = 0; s < batch.n_sequences; ++s)
        pool_tokens(tokens + (batch.starts[s] - batch.starts[0]) * model.width, int(batch.starts[s + 1] - batch.starts[s]),
                    model.width, model.hidden, pooling, own.pooled.data() + int64_t(s) * width);
    if (result == Result::finished) width = tail.apply(kernels, own.pooled, batch.n_sequences, width);
    for (int s = 0; s < batch.n_sequences; ++s) std::copy_n(own.pooled.data() + int64_t(s) * width, dim, out + int64_t(s) * dim);
}

namespace {

Batch batch_of(const Texts& texts, const std::vector<int64_t>& bounds, size_t b) {
    Batch batch;
    batch.ids = texts.ids;
    batch.types = texts.types;
    batch.starts = texts.starts + bounds[b];
    batch.n_sequences = int(bounds[b + 1] - bounds[b]);
    return batch;
}

}  // namespace

bool Engine::encode(const Texts& texts, const Pooling& pooling, Result result, float* out, int dim, const GoesOn& goes_on) {
    check(texts, pooling, result, dim);
    if (texts.n_texts == 0) return true;
    const std::vector<int64_t> bounds = batches(texts);
    if (bounds.size() - 1 >= size_t(pool.size())) return encode_apart(texts, bounds, pooling, result, out, dim, goes_on);
    encode_together(texts, bounds, pooling, result, out, dim);
    return true;
}

// Each thread takes micro-batches through all layers by itself: nobody waits for anybody.
bool Engine::encode_apart(const Texts& texts, const std::vector<int64_t>& bounds, const Pooling& pooling, Result result,
                          float* out, int dim, const GoesOn& goes_on) {
    std::atomic<size_t> next{0};
    std::atomic<bool> stopped{false};
    pool.run([&](int member) {
        Workspace& own = workspaces[size_t(member)];
        for (size_t b = next++; b + 1 < bounds.size() && !stopped; b = next++) {
            const Batch batch = batch_of(texts, bounds, b);
            prepare(own, batch.n_tokens());
            prepare_attention(own, batch.longest());
            Team alone;
            kernels.forward(model, batch, own.scratch, own.attention, alone, 0);
            write(batch, own, pooling, result, result == Result::tokens ? out : out + bounds[b] * dim, dim);
            if (member == 0 && goes_on && !goes_on()) stopped = true;
        }
    });
    return !stopped;
}

// All threads work on one micro-batch: each computes other columns and other heads.
void Engine::encode_together(const Texts& texts, const std::vector<int64_t>& bounds, const Pooling& pooling, Result result,
                             float* out, int dim) {
    Team team;
    team.size = pool.size();
    std::mutex failing;
    std::exception_ptr failure;  // kept until all have passed the barrier: nobody may wait for one who has gone
    const auto attempt = [&](auto step) {
        try {
            step();
        } catch (...) {
            std::lock_guard<std::mutex> guard(failing);
            failure = std::current_exception();
        }
    };
    pool.run([&](int member) {
        Workspace& own = workspaces[size_t(member)];
        Workspace& common = workspaces.front();
        for (size_t b = 0; b + 1 < bounds.size(); ++b) {
            const Batch batch = batch_of(texts, bounds, b);
            attempt([&] {
                if (member == 0) prepare(common, batch.n_tokens());
                prepare_attention(own, batch.longest());
            });
            team.wait();
            if (failure) return;
            kernels.forward(model, batch, common.scratch, own.attention, team, member);
            if (member == 0)
                attempt([&] { write(batch, common, pooling, result, result == Result::tokens ? out : out + bounds[b] * dim, dim); });
        }
    });
    if (failure) std::rethrow_exception(failure);
}

void Engine::finish(const float* pooled, int64_t n, int pooled_dim, float* out, int dim) {
    const int full = tail.output_dim(pooled_dim);
    if (dim < 1 || dim > full) refuse("vectors of " + std::to_string(full) + " numbers cannot fill rows of " + std::to_string(dim));
    constexpr int64_t at_once = 256;
    for (int64_t start = 0; start < n; start += at_once) {
        const int n_rows = int(std::min(at_once, n - start));
        std::vector<float> rows(pooled + start * pooled_dim, pooled + (start + n_rows) * pooled_dim);
        const int width = tail.apply(kernels, rows, n_rows, pooled_dim);
        for (int r = 0; r < n_rows; ++r) std::copy_n(rows.data() + int64_t(r) * width, dim, out + (start + r) * dim);
    }
}

}  // namespace gemel
