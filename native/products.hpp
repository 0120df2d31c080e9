// Matrix products: panels of weights by rows of activations, with what follows done while a tile is near.
#pragma once

namespace {

using namespace gemel;

constexpr int cache_line = 64;

// Rows of activations, quantised (x = byte * scale + lowest) or as they are.
struct Rows {
    const uint8_t* bytes;
    const float* floats;
    const float* scale;  // (groups of the depth, n_rows)
    const float* lowest;
    int64_t stride;
    int n_rows;
};

// Where outputs go.
struct Place {
    float* floats;
    int64_t stride;

    float* at(int row, int column) const { return floats + row * stride + column; }
};

// A tile of as many rows as there are, up to a whole one. take(row, column, sum) gets each vector of sums.
template <int Rows, class Element, class Weight, class Take>
void tile_of(const Element* rows, int64_t stride, const Weight* panel, int depth, Ahead ahead, int n_rows, Take take) {
    if constexpr (Rows > 1) {
        if (n_rows < Rows) return tile_of<Rows - 1>(rows, stride, panel, depth, ahead, n_rows, take);
    }
    simd::tile<Rows>(rows, stride, panel, depth, ahead, take);
}

inline void prefetch_row(const float* row, int n) {
    for (int i = 0; i < n; i += cache_line / int(sizeof(float))) __builtin_prefetch(row + i);
}

// The lines that a tile will write, fetched while it computes.
inline void prefetch(const Place& place, int row, int n_rows, int column) {
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < panel_width; c += cache_line / int(sizeof(float))) __builtin_prefetch(place.at(row + r, column + c), 1, 3);
}

// One tile of an int8 product, all groups of its depth. With x = byte * scale + lowest, W x + b is the groups'
// scale * (bytes' sums), and lowest * (weights' sums) + b.
template <class Finish>
void int8_tile(const Linear& linear, int panel, const Rows& rows, int row, int n_rows, Ahead ahead, const Place& place,
               Finish finish) {
    alignas(64) float before[simd::tile_rows * panel_width];  // what the earlier groups give
    const int n_groups = linear.n_groups, group = linear.depth / n_groups, last = n_groups - 1;
    const float* scales = linear.scales + int64_t(panel) * linear.n_groups * panel_width;
    const int8_t* weights = linear.int8_panels + int64_t(panel) * linear.depth * panel_width;
    const uint8_t* bytes = rows.bytes + row * rows.stride;
    const float* scale = rows.scale + row;
    for (int g = 0; g < last; ++g) {
        tile_of<simd::tile_rows>(bytes, rows.stride, weights, group, ahead, n_rows, [=, &before](int r, int c, simd::Ints sum) {
            float* at = before + r * panel_width + c;
            const simd::Floats so_far = g ? simd::load(at) : simd::all(0.0f);
            const simd::Floats value = simd::to_floats(sum) * simd::load(scales + c);
            simd::store(at, simd::fma(value, simd::all(scale[r]), so_far));
        });
        ahead.at += ahead.step * (group / 4);
        scales += panel_width;
        weights += group * panel_width;
        bytes += group;
        scale += rows.n_rows;
    }
    const float* sums = linear.sums + panel * panel_width;
    const float* bias = linear.bias + panel * panel_width;
    const float* lowest = rows.lowest + row;
    float* out = place.at(row, panel * panel_width);
    const int64_t stride = place.stride;
    const float* earlier = last ? before : nullptr;
    tile_of<simd::tile_rows>(bytes, rows.stride, weights, group, ahead, n_rows, [=](int r, int c, simd::Ints sum) {
        const simd::Floats value = simd::to_floats(sum) * simd::load(scales + c);
        simd::Floats lifted = simd::fma(simd::all(lowest[r]), simd::load(sums + c), simd::load(bias + c));
        if (earlier) lifted = lifted + simd::load(earlier + r * panel_width + c);
        finish(out + r * stride + c, simd::fma(value, simd::all(scale[r]), lifted));
    });
}

template <class Finish>
void float_tile(const Linear& linear, int panel, const Rows& rows, int row, int n_rows, Ahead ahead, const Place& place,
                Finish finish) {
    const float* weights = linear.float_panels + int64_t(panel) * linear.depth * panel_width;
    const float* bias = linear.bias + panel * panel_width;
    float* out = place.at(row, panel * panel_width);
    const int64_t stride = place.stride;
    tile_of<simd::tile_rows>(rows.floats + row * rows.stride, rows.stride, weights, linear.depth, ahead, n_rows,
                             [=](int r, int c, simd::Floats sum) { finish(out + r * stride + c, sum + simd::load(bias + c)); });
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
            if (is_int8) int8_tile(linear, panel, rows, row, n, ahead, place, finish);
            else float_tile(linear, panel, rows, row, n, ahead, place, finish);
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

// Numbers as bytes: the smallest becomes 0, the largest 255; gives what a step is worth. n is a multiple of 64.
inline float to_bytes(const float* row, int n, float smallest, float largest, uint8_t* bytes) {
    const float range = largest - smallest;
    const float steps = range > 0.0f ? 255.0f / range : 0.0f;
    const simd::Floats factor = simd::all(steps), offset = simd::all(-smallest * steps);
    for (int i = 0; i < n; i += 64) simd::store_64_bytes(bytes + i, row + i, factor, offset);
    return range / 255.0f;
}

inline Extremes extremes_of(const float* row, int n) {
    Extremes extremes(row);
    for (int i = 0; i < n; i += Extremes::strands * simd::lanes)
        for (int s = 0; s < Extremes::strands; ++s) {
            __builtin_prefetch(row + n + i + s * simd::lanes);  // the next row
            extremes.take(s, simd::load(row + i + s * simd::lanes));
        }
    return extremes;
}

// The largest of numbers that are never below `floor`.
inline float largest_above(float floor, const float* row, int n, int to_next) {
    simd::Floats high[Extremes::strands];
    for (int s = 0; s < Extremes::strands; ++s) high[s] = simd::all(floor);
    for (int i = 0; i < n; i += Extremes::strands * simd::lanes)
        for (int s = 0; s < Extremes::strands; ++s) {
            __builtin_prefetch(row + to_next + i + s * simd::lanes);  // the next row
            high[s] = simd::larger(high[s], simd::load(row + i + s * simd::lanes));
        }
    return simd::largest(simd::larger(simd::larger(high[0], high[1]), simd::larger(high[2], high[3])));
}

}  // namespace
