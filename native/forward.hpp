// The forward pass, compiled once for every instruction set (see kernels_*.cpp).
#pragma once

namespace {

using namespace gemel;

inline void plain(float* at, simd::Floats x) { simd::store(at, x); }

// word + type + place, of which the last two may be missing.
inline void add_up(const float* word, const float* type, const float* place, int n, float* __restrict to) {
    if (type && place)
        for (int i = 0; i < n; ++i) to[i] = word[i] + type[i] + place[i];
    else if (type || place)
        for (int i = 0; i < n; ++i) to[i] = word[i] + (type ? type : place)[i];
    else
        for (int i = 0; i < n; ++i) to[i] = word[i];
}

// Mean 0, variance 1, then gain and shift; in place. Gives the extremes of the result.
inline Extremes normalise(float* row, int n, const LayerNorm& norm, float epsilon) {
    const int n_whole = rounded_up(n, row_alignment);  // beyond the end stand zeros
    constexpr int strands = 4;                         // independent sums: one waits for the one before it
    simd::Floats total[strands], squares[strands];
    for (int s = 0; s < strands; ++s) total[s] = squares[s] = simd::all(0.0f);
    for (int i = 0; i < n_whole; i += strands * simd::lanes)
        for (int s = 0; s < strands; ++s) {
            __builtin_prefetch(row + n_whole + i + s * simd::lanes);  // the next row
            total[s] = total[s] + simd::load(row + i + s * simd::lanes);
        }
    const float mean = simd::sum((total[0] + total[1]) + (total[2] + total[3])) / float(n);
    const simd::Floats centre = simd::all(mean);
    for (int i = 0; i < n_whole; i += strands * simd::lanes)
        for (int s = 0; s < strands; ++s) {
            const simd::Floats x = simd::load(row + i + s * simd::lanes) - centre;
            squares[s] = simd::fma(x, x, squares[s]);
        }
    const float of_the_end = float(n_whole - n) * mean * mean;
    const float variance = (simd::sum((squares[0] + squares[1]) + (squares[2] + squares[3])) - of_the_end) / float(n);
    const simd::Floats factor = simd::all(1.0f / __builtin_sqrtf(variance + epsilon));
    const auto scaled = [&](int i) {
        const simd::Floats x = (simd::load(row + i) - centre) * factor;
        return simd::fma(x, simd::load(norm.gain + i), simd::load(norm.shift + i));
    };
    simd::store(row, scaled(0));
    Extremes extremes(row);
    for (int i = simd::lanes; i < n_whole; i += simd::lanes) {
        const simd::Floats x = scaled(i);
        simd::store(row + i, x);
        extremes.take(i / simd::lanes % strands, x);
    }
    return extremes;
}

// The smallest number that an activation gives.
constexpr float least_of(Activation activation) {
    return activation == Activation::relu ? 0.0f : activation == Activation::silu ? -0.2785f : -0.1702f;
}

// One member's part of the forward pass of one batch.
class Pass {
  public:
    Pass(const Model& model, const Batch& batch, const Scratch& scratch, const AttentionScratch& own, Team& team,
         int member)
        : model(model), batch(batch), scratch(scratch), own(own), team(team), member(member),
          n_tokens(batch.n_tokens()) {}

    void run() {
        embed();
        for (int i = 0; i < model.n_layers; ++i) {
            const Layer& layer = model.layers[i];
            attention(layer);
            feed_forward(layer, model.layers[i + 1 < model.n_layers ? i + 1 : 0].query_key_value);
        }
    }

  private:
    const Model& model;
    const Batch& batch;
    const Scratch& scratch;
    const AttentionScratch& own;
    Team& team;
    const int member, n_tokens;

    Span my_rows() const { return share(n_tokens, member, team.size); }
    Span my_panels(const Linear& linear) const { return share(linear.n_panels, member, team.size); }
    const char* first_panel(const Linear& linear) const { return panel_of(linear, my_panels(linear).begin); }
    float* token(int row) const { return scratch.tokens + int64_t(row) * model.width; }

    void embed() {
        const int dim = model.embedding_dim;
        const int width = model.projection ? model.projection->depth : model.width;
        float* table = model.projection ? scratch.context : scratch.tokens;
        const Span mine = my_rows();
        int sequence = 0;
        for (int row = mine.begin; row < mine.end; ++row) {
            while (batch.starts[sequence + 1] - batch.starts[0] <= row) ++sequence;
            const int position = int(row - (batch.starts[sequence] - batch.starts[0])) + model.first_position;
            const int64_t at = batch.starts[0] + row;
            float* to = table + int64_t(row) * width;
            const float* word = model.words + int64_t(batch.ids[at]) * dim;
            const float* place = model.positions ? model.positions + int64_t(position) * dim : nullptr;
            const float* type = model.types ? model.types + int64_t(batch.types ? batch.types[at] : 0) * dim : nullptr;
            if (row + 1 < mine.end) prefetch_row(model.words + int64_t(batch.ids[at + 1]) * dim, dim);
            add_up(word, type, place, dim, to);
            for (int i = dim; i < width; ++i) to[i] = 0.0f;
            normalise(to, dim, model.after_embedding, model.epsilon);
        }
        if (model.projection) project();
        if (model.is_int8) quantise_rows(scratch.tokens, model.width);
        else team.wait();
    }

    // ELECTRA's narrow embeddings are widened in float32: it is one small product.
    void project() {
        team.wait();
        multiply(*model.projection, {nullptr, scratch.context, nullptr, nullptr, model.projection->depth, n_tokens}, n_tokens,
                 my_panels(*model.projection), first_panel(model.layers[0].query_key_value), {scratch.tokens, model.width}, plain);
        team.wait();
    }

    void quantise_row(const float* row, const Extremes& extremes, int width, int number) const {
        const float smallest = extremes.smallest(), largest = extremes.largest();
        scratch.scale[number] = to_bytes(row, width, smallest, largest, scratch.quantised + int64_t(number) * width);
        scratch.lowest[number] = smallest;
    }

    void quantise_rows(const float* rows, int width) {
        if (!model.is_int8) return;
        const Span mine = my_rows();
        for (int row = mine.begin; row < mine.end; ++row) {
            const float* at = rows + int64_t(row) * width;
            quantise_row(at, extremes_of(at, width), width, row);
        }
        team.wait();
    }

    // The feed-forward layer's rows, each group by itself: where one has a large number, the others keep small steps.
    // Their zero is the activation's smallest number, the same for all groups.
    void quantise_activated(const Linear& down) {
        if (!model.is_int8) return;
        const Span mine = my_rows();
        const int width = down.depth, group = width / down.n_groups;
        for (int row = mine.begin; row < mine.end; ++row) {
            const float* at = scratch.wide + int64_t(row) * width;
            const bool has_floor = model.activation != Activation::identity;
            const float floor = has_floor ? least_of(model.activation) : extremes_of(at, width).smallest();
            for (int g = 0; g < down.n_groups; ++g, at += group)
                scratch.scale[g * n_tokens + row] =
                    to_bytes(at, group, floor, largest_above(floor, at, group, width),
                             scratch.quantised + int64_t(row) * width + g * group);
            scratch.lowest[row] = floor;
        }
        team.wait();
    }

    Rows rows_of(const float* floats, int width) const {
        return {scratch.quantised, floats, scratch.scale, scratch.lowest, width, n_tokens};
    }

    void attention(const Layer& layer) {
        const Linear& projections = layer.query_key_value;
        const int64_t stride = projections.width();
        multiply(projections, rows_of(scratch.tokens, model.width), n_tokens, my_panels(projections),
                 first_panel(layer.attention_output), {scratch.wide, stride}, plain);
        team.wait();
        attend_heads(stride, layer.attention_output.depth);
        team.wait();
        quantise_rows(scratch.context, layer.attention_output.depth);
        add_to_tokens(layer.attention_output, layer.up, scratch.context, layer.after_attention);
    }

    void attend_heads(int64_t stride, int context_width) {
        const int n_columns = model.n_heads * model.head_dim;
        const Span mine = share(batch.n_sequences * model.n_heads, member, team.size);
        for (int item = mine.begin; item < mine.end; ++item) {
            const int sequence = item / model.n_heads, h = item % model.n_heads;
            const int64_t start = batch.starts[sequence] - batch.starts[0];
            const float* query = scratch.wide + start * stride + h * model.head_dim;
            Head head;
            head.query = query;
            head.key = query + n_columns;
            head.value = query + 2 * n_columns;
            head.out = scratch.context + start * context_width + h * model.head_dim;
            head.stride = stride;
            head.out_stride = context_width;
            head.n_tokens = int(batch.starts[sequence + 1] - batch.starts[sequence]);
            head.head_dim = model.head_dim;
            head.bias = model.distance_bias
                            ? model.distance_bias + int64_t(h) * (2 * model.n_positions + block) + model.n_positions - 1
                            : nullptr;
            attend(head, own);
        }
        if (context_width > n_columns)
            for (int row = my_rows().begin; row < my_rows().end; ++row)
                for (int i = n_columns; i < context_width; ++i) scratch.context[int64_t(row) * context_width + i] = 0.0f;
    }

    // tokens = LayerNorm(tokens + W rows + b), quantised for what comes next.
    void add_to_tokens(const Linear& linear, const Linear& next, const float* rows, const LayerNorm& norm) {
        const Span mine = my_rows();
        multiply(linear, rows_of(rows, linear.depth), n_tokens, my_panels(linear), first_panel(next),
                 {scratch.tokens, model.width}, [](float* at, simd::Floats x) { simd::store(at, x + simd::load(at)); });
        team.wait();
        for (int row = mine.begin; row < mine.end; ++row) {
            const Extremes extremes = normalise(token(row), model.hidden, norm, model.epsilon);
            if (model.is_int8) quantise_row(token(row), extremes, model.width, row);
        }
        team.wait();
    }

    void feed_forward(const Layer& layer, const Linear& next) {
        switch (model.activation) {
            case Activation::gelu:
                if (model.is_int8) up(layer, [](simd::Floats x) { return simd::gelu_for_int8(x); });
                else up(layer, [](simd::Floats x) { return simd::gelu(x); });
                break;
            case Activation::gelu_tanh: up(layer, [](simd::Floats x) { return simd::gelu_tanh(x); }); break;
            case Activation::relu: up(layer, [](simd::Floats x) { return simd::larger(x, simd::all(0.0f)); }); break;
            case Activation::silu: up(layer, [](simd::Floats x) { return simd::gated(x, x); }); break;
            case Activation::identity: up(layer, [](simd::Floats x) { return x; }); break;
        }
        team.wait();
        quantise_activated(layer.down);
        add_to_tokens(layer.down, next, scratch.wide, layer.after_feed_forward);
    }

    template <class Function>
    void up(const Layer& layer, Function function) {
        const int64_t width = layer.down.depth;
        multiply(layer.up, rows_of(scratch.tokens, model.width), n_tokens, my_panels(layer.up), first_panel(layer.down),
                 {scratch.wide, width}, [&](float* at, simd::Floats x) { simd::store(at, function(x)); });
    }
};

void forward(const Model& model, const Batch& batch, const Scratch& scratch, const AttentionScratch& own, Team& team,
             int member) {
    Pass(model, batch, scratch, own, team, member).run();
}

void linear(const Linear& layer, const float* rows, int n_rows, float* out) {
    multiply(layer, {nullptr, rows, nullptr, nullptr, layer.depth, n_rows}, n_rows, {0, layer.n_panels}, panel_of(layer, 0),
             {out, layer.width()}, plain);
}

void int8_sums(const Linear& layer, const uint8_t* rows, int n_rows, int32_t* out) {
    const int64_t width = layer.width();
    for (int panel = 0; panel < layer.n_panels; ++panel)
        for (int row = 0; row < n_rows; row += simd::tile_rows) {
            const int n = n_rows - row < simd::tile_rows ? n_rows - row : simd::tile_rows;
            int32_t* at = out + row * width + panel * panel_width;
            tile_of<simd::tile_rows>(rows + int64_t(row) * layer.depth, layer.depth,
                                     layer.int8_panels + int64_t(panel) * layer.depth * panel_width, layer.depth, {}, n,
                                     [=](int r, int c, simd::Ints sum) { simd::store(at + r * width + c, sum); });
        }
}

// The bare tiles, whose speed is the ceiling.
void bare_int8_tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth, int32_t* sums) {
    simd::tile<simd::tile_rows>(rows, stride, panel, depth, Ahead{reinterpret_cast<const char*>(panel), 0},
                                [=](int r, int c, simd::Ints sum) { simd::store(sums + r * panel_width + c, sum); });
}

void bare_float_tile(const float* rows, int64_t stride, const float* panel, int depth, float* sums) {
    simd::tile<simd::tile_rows>(rows, stride, panel, depth, Ahead{reinterpret_cast<const char*>(panel), 0},
                                [=](int r, int c, simd::Floats sum) { simd::store(sums + r * panel_width + c, sum); });
}

Kernels named(const char* name) {
    return {name, forward, linear, int8_sums, simd::tile_rows, bare_int8_tile, bare_float_tile, sieve};
}

}  // namespace
