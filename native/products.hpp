// Matrix products: panels of weights by rows of activations, with what follows done while a tile is near.
#pragma once

namespace {

using namespace gemel;

constexpr int cache_line = 64;

// Rows of activations, quantised (x = byte * scale + lowest) or as they are.
struct Rows {
    const uint8_t* bytes;
    const float* floats;
    const float* scale;
    const float* lowest;
    int64_t stride;
};

// Where outputs go.
struct Place {
    float* floats;
    int64_t stride;

    float* at(int row, int column) const { return floats + row * stride + column; }
};

template <int Rows, class Element, class Weight, class Sum>
void tile_of(const Element* rows, int64_t stride, const Weight* panel, int depth, Ahead ahead, Sum* sums, int n_rows) {
    if constexpr (Rows > 1) {
        if (n_rows < Rows) return tile_of<Rows - 1>(rows, stride, panel, depth, ahead, sums, n_rows);
    }
    simd::tile<Rows>(rows, stride, panel, depth, ahead, sums);
}

// The lines that a tile will write, fetched while it computes.
inline void prefetch(const Place& place, int row, int n_rows, int column) {
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < panel_width; c += cache_line / int(sizeof(float))) __builtin_prefetch(place.at(row + r, column + c), 1, 3);
}

// What one tile of a panel computes: a few rows by 64 outputs, before scales and bias.
struct Tile {
    alignas(64) int32_t sums[simd::tile_rows * panel_width];
    alignas(64) float floats[simd::tile_rows * panel_width];  // float32, or the earlier groups of int8
};

// All groups of the depth; the last one's sums stay integers, for the epilogue to add.
inline void int8_groups(const Linear& linear, int panel, const Rows& rows, int row, int n_rows, Ahead ahead, Tile& tile) {
    const int group = linear.depth / linear.n_groups;
    const float* scales = linear.scales + int64_t(panel) * linear.n_groups * panel_width;
    for (int g = 0; g < linear.n_groups; ++g, scales += panel_width) {
        const int8_t* weights = linear.int8_panels + panel_width * (int64_t(panel) * linear.depth + g * group);
        const uint8_t* bytes = rows.bytes + row * rows.stride + g * group;
        tile_of<simd::tile_rows>(bytes, rows.stride, weights, group, ahead, tile.sums, n_rows);
        ahead.at += ahead.step * (group / 4);
        if (g + 1 == linear.n_groups) return;
        for (int c = 0; c < panel_width; c += simd::lanes) {
            const simd::Floats scale = simd::load(scales + c);
            for (int at = c; at < n_rows * panel_width; at += panel_width) {
                const simd::Floats sum = simd::to_floats(simd::load(tile.sums + at));
                const simd::Floats before = g ? simd::load(tile.floats + at) : simd::all(0.0f);
                simd::store(tile.floats + at, simd::fma(sum, scale, before));
            }
        }
    }
}

// With x = byte * scale + lowest, W x + b is scale * (bytes' sums) + lowest * (weights' sums) + b.
template <class Finish>
void finish_int8(const Linear& linear, int panel, const Rows& rows, int row, int n_rows, const Tile& tile, const Place& place, Finish finish) {
    const float* scales = linear.scales + (int64_t(panel + 1) * linear.n_groups - 1) * panel_width;
    for (int c = 0; c < panel_width; c += simd::lanes) {
        const int column = panel * panel_width + c;
        const simd::Floats scale = simd::load(scales + c);
        const simd::Floats sums = simd::load(linear.sums + column), bias = simd::load(linear.bias + column);
        for (int r = 0; r < n_rows; ++r) {
            const int at = r * panel_width + c;
            simd::Floats value = simd::to_floats(simd::load(tile.sums + at)) * scale;
            if (linear.n_groups > 1) value = value + simd::load(tile.floats + at);
            const simd::Floats lifted = simd::fma(simd::all(rows.lowest[row + r]), sums, bias);
            finish(place.at(row + r, column), simd::fma(value, simd::all(rows.scale[row + r]), lifted));
        }
    }
}

template <class Finish>
void finish_float(const Linear& linear, int panel, int row, int n_rows, const Tile& tile, const Place& place, Finish finish) {
    for (int c = 0; c < panel_width; c += simd::lanes) {
        const int column = panel * panel_width + c;
        const simd::Floats bias = simd::load(linear.bias + column);
        for (int r = 0; r < n_rows; ++r)
            finish(place.at(row + r, column), simd::load(tile.floats + r * panel_width + c) + bias);
    }
}

inline const char* panel_of(const Linear& linear, int panel) {
    const int64_t at = int64_t(panel) * linear.depth * panel_width;
    return linear.int8_panels ? reinterpret_cast<const char*>(linear.int8_panels + at)
                              : reinterpret_cast<const char*>(linear.float_panels + at);
}

// The panels of W by all rows. `finish(at, value)` puts each vector of outputs in its place.
// A panel stays in the nearest cache while all rows pass by, and the next one is fetched meanwhile;
// after the last one comes `next`.
template <class Finish>
void multiply(const Linear& linear, const Rows& rows, int n_rows, Span panels, const char* next, const Place& place,
              Finish finish) {
    Tile tile;
    const bool is_int8 = linear.int8_panels != nullptr;
    const int64_t panel_bytes = int64_t(linear.depth) * panel_width * (is_int8 ? 1 : 4);
    const int n_tiles = (n_rows + simd::tile_rows - 1) / simd::tile_rows;
    const int64_t tile_bytes = (panel_bytes + n_tiles - 1) / n_tiles;
    const int64_t step = (tile_bytes + linear.depth - 1) / linear.depth * (is_int8 ? 4 : 1);
    for (int panel = panels.begin; panel < panels.end; ++panel)
        for (int t = 0; t < n_tiles; ++t) {
            const int row = t * simd::tile_rows;
            const int n = n_rows - row < simd::tile_rows ? n_rows - row : simd::tile_rows;
            const char* following = panel + 1 < panels.end ? panel_of(linear, panel + 1) : next;
            const Ahead ahead{following + t * tile_bytes, step};
            prefetch(place, row, n, panel * panel_width);
            if (is_int8) {
                int8_groups(linear, panel, rows, row, n, ahead, tile);
                finish_int8(linear, panel, rows, row, n, tile, place, finish);
            } else {
                const float* own = reinterpret_cast<const float*>(panel_of(linear, panel));
                const float* floats = rows.floats + row * rows.stride;
                tile_of<simd::tile_rows>(floats, rows.stride, own, linear.depth, ahead, tile.floats, n);
                finish_float(linear, panel, row, n, tile, place, finish);
            }
        }
}

// The smallest and the largest number of a row, found while it passes by.
struct Extremes {
    static constexpr int strands = 4;  // independent ones: an extremum waits for the one before it
    simd::Floats low[strands], high[strands];

    explicit Extremes(const float* row) {
        for (int s = 0; s < strands; ++s) low[s] = high[s] = simd::load(row);
    }
    void take(int strand, simd::Floats x) {
        low[strand] = simd::smaller(low[strand], x);
        high[strand] = simd::larger(high[strand], x);
    }
    float smallest() const {
        return simd::smallest(simd::smaller(simd::smaller(low[0], low[1]), simd::smaller(low[2], low[3])));
    }
    float largest() const {
        return simd::largest(simd::larger(simd::larger(high[0], high[1]), simd::larger(high[2], high[3])));
    }
};

// A row as bytes: the smallest number becomes 0, the largest 255. n is a multiple of 64.
inline void quantise(const float* row, int n, const Extremes& extremes, uint8_t* bytes, float* scale, float* lowest) {
    const float smallest = extremes.smallest(), range = extremes.largest() - smallest;
    const float steps = range > 0.0f ? 255.0f / range : 0.0f;
    const simd::Floats factor = simd::all(steps), offset = simd::all(-smallest * steps);
    for (int i = 0; i < n; i += 64) simd::store_64_bytes(bytes + i, row + i, factor, offset);
    *scale = range / 255.0f;
    *lowest = smallest;
}

inline void quantise(const float* row, int n, uint8_t* bytes, float* scale, float* lowest) {
    Extremes extremes(row);
    for (int i = 0; i < n; i += Extremes::strands * simd::lanes)
        for (int s = 0; s < Extremes::strands; ++s) extremes.take(s, simd::load(row + i + s * simd::lanes));
    quantise(row, n, extremes, bytes, scale, lowest);
}

}  // namespace
