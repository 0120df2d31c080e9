// The sieve for this instruction set, in terms of whichever simd header was included before.
#pragma once

namespace {

using namespace gemel;

inline float largest_magnitude(const float* row, int dim) {
    constexpr int strands = 32;
    float most[strands] = {};
    int i = 0;
    for (; i + strands <= dim; i += strands)
        for (int s = 0; s < strands; ++s) {
            const float size = __builtin_fabsf(row[i + s]);
            most[s] = size > most[s] ? size : most[s];
        }
    for (; i < dim; ++i) {
        const float size = __builtin_fabsf(row[i]);
        most[0] = size > most[0] ? size : most[0];
    }
    for (int s = 1; s < strands; ++s) most[0] = most[s] > most[0] ? most[s] : most[0];
    return most[0];
}

// To the nearest whole number: the added constant has no bits left for a rest.
inline float nearest(float x) { return (x + 12582912.0f) - 12582912.0f; }
inline double nearest(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// What the arithmetic itself may leave out of a rest, as a share of the length.
inline double lost(float) { return 1e-6; }
inline double lost(double) { return 1e-14; }

template <class Real>
Coarse coarsen_in(const float* row, int dim, double divisor, float most, int levels, int8_t* bytes) {
    constexpr int strands = 32;
    Coarse made;
    made.step = float(double(most) / divisor / double(levels));
    const Real inverse = Real(double(levels) / double(most)), reciprocal = Real(1.0 / divisor), step = Real(made.step);
    Real lengths[strands] = {}, rests[strands] = {};
    const auto take = [&](int i, int s) {
        const Real x = Real(row[i]), whole = nearest(x * inverse);
        const Real value = x * reciprocal, rest = value - step * whole;
        bytes[i] = int8_t(int32_t(whole));
        lengths[s] += value * value;
        rests[s] += rest * rest;
    };
    int i = 0;
    for (; i + strands <= dim; i += strands)
        for (int s = 0; s < strands; ++s) take(i + s, s);
    for (int s = 0; i < dim; ++i, ++s) take(i, s);
    double length = 0.0, rest = 0.0;
    for (int s = 0; s < strands; ++s) {
        length += double(lengths[s]);
        rest += double(rests[s]);
    }
    constexpr double beyond_rounding = 1.0 + 1e-5;
    made.length = __builtin_sqrt(length) * beyond_rounding;
    made.rest = __builtin_sqrt(rest) * beyond_rounding + lost(Real()) * made.length;
    return made;
}

// How many times too long the longest part of the row is whose products are summed in 16 bits: the product of two parts
// is at most that of their lengths.
inline double excess(const int8_t* bytes, int dim) {
    if (!simd::grain.group) return 0.0;
    constexpr int most = (1 << 15) - 1;
    int longest = 0;
    for (int begin = 0; begin < dim; begin += simd::grain.group) {
        const int end = begin + simd::grain.group < dim ? begin + simd::grain.group : dim;
        int squares[4] = {}, i = begin;
        for (; i + 4 <= end; i += 4)
            for (int s = 0; s < 4; ++s) squares[s] += bytes[i + s] * bytes[i + s];
        for (int s = 0; i < end; ++i, ++s) squares[s] += bytes[i] * bytes[i];
        for (int half = 0; half < 4; half += 2) {
            const int square = squares[half] + squares[half + 1];
            longest = square > longest ? square : longest;
        }
    }
    return __builtin_sqrt(double(longest) / most);
}

// A tile of as many rows as there are, up to a whole one.
template <int Rows, class Take>
void coarse_tile(const RaisedRows& rows, int row, const Panel& panel, Ahead ahead, int n_rows, Take take) {
    if constexpr (Rows > 1) {
        if (n_rows < Rows) return coarse_tile<Rows - 1>(rows, row, panel, ahead, n_rows, take);
    }
    simd::coarse_tile<Rows>(rows.bytes + row * rows.stride, rows.stride, panel, ahead, take);
}

Coarse coarsen(const float* row, int dim, double divisor, int8_t* bytes) {
    const float most = largest_magnitude(row, dim);
    if (!(most > 0.0f) || !(divisor > 0.0)) {
        for (int i = 0; i < dim; ++i) bytes[i] = 0;
        return {};
    }
    // Squares of numbers in this range, and what is left of them, are normal in float32.
    const double largest = double(most) / divisor;
    const bool is_usual = largest > 1e-10 && largest < 1e10 && most > 1e-30f && most < 1e30f && divisor < 1e30 && divisor > 1e-30;
    int levels = simd::grain.most;
    while (true) {
        const Coarse made = is_usual ? coarsen_in<float>(row, dim, divisor, most, levels, bytes)
                                     : coarsen_in<double>(row, dim, divisor, most, levels, bytes);
        const double too_long = excess(bytes, dim);
        if (too_long <= 1.0) return made;
        levels = int(double(levels) / too_long);
    }
}

// Every tile of rows by a panel, while the next panel is fetched: take_tile(tile, row, n_rows, ahead).
template <class TakeTile>
void each_tile(const RaisedRows& rows, const Panel& panel, const int8_t* next, TakeTile take_tile) {
    const int n_tiles = (rows.n_rows + simd::tile_rows - 1) / simd::tile_rows;
    const int64_t tile_bytes = (int64_t(panel.depth) * panel_width + n_tiles - 1) / n_tiles;
    const int64_t step = (tile_bytes + panel.depth - 1) / panel.depth * 4;
    for (int t = 0; t < n_tiles; ++t) {
        const int row = t * simd::tile_rows;
        const int n = rows.n_rows - row < simd::tile_rows ? rows.n_rows - row : simd::tile_rows;
        take_tile(t, row, n, Ahead{reinterpret_cast<const char*>(next) + t * tile_bytes, step});
    }
}

void sift(const RaisedRows& rows, const Panel& panel, const int8_t* next, const float* floors, uint64_t* found) {
    const float *steps = panel.steps, *shifts = panel.shifts;
    each_tile(rows, panel, next, [&](int, int row, int n, Ahead ahead) {
        uint64_t* bits = found + row;
        const float* needed = floors + row;
        for (int r = 0; r < n; ++r) bits[r] = 0;
        coarse_tile<simd::tile_rows>(rows, row, panel, ahead, n, [=](int r, int c, simd::Ints sum) {
            const simd::Floats product = simd::fma(simd::to_floats(sum), simd::load(steps + c), simd::load(shifts + c));
            bits[r] |= uint64_t(simd::reaching(product, simd::all(needed[r]))) << c;
        });
    });
}

void sift_tiles(const RaisedRows& rows, const Panel& panel, const Beside& beside, const int8_t* next, const float* floors,
                uint8_t* is_open) {
    const float *steps = panel.steps, *shifts = panel.shifts, *columns = beside.columns;
    each_tile(rows, panel, next, [&](int tile, int row, int n, Ahead ahead) {
        const float *needed = floors + row, *own = beside.rows + row;
        uint32_t reaching = 0;
        uint32_t* any = &reaching;
        coarse_tile<simd::tile_rows>(rows, row, panel, ahead, n, [=](int r, int c, simd::Ints sum) {
            const simd::Floats along = simd::fma(simd::to_floats(sum), simd::load(steps + c), simd::load(shifts + c));
            const simd::Floats most = simd::fma(simd::all(own[r]), simd::load(columns + c), along);
            *any |= uint32_t(simd::reaching(most, simd::all(needed[r])));
        });
        is_open[tile] = reaching != 0;
    });
}

// In float32 and unfused, in 64 strands that are joined two by two: every instruction set gives the same bits.
float short_dot(const float* a, const float* b, int dim) {
    constexpr int strands = 64, parts = strands / simd::lanes, of_sixteen = 16 / simd::lanes;
    static_assert(simd::lanes == 8 || simd::lanes == 16);
    simd::Floats sums[parts];
    for (int p = 0; p < parts; ++p) sums[p] = simd::all(0.0f);
    int i = 0;
    for (; i + strands <= dim; i += strands)
        for (int p = 0; p < parts; ++p)
            sums[p] = sums[p] + simd::load(a + i + p * simd::lanes) * simd::load(b + i + p * simd::lanes);
    if (i < dim) {  // zeros behind the end leave a strand as it is
        float left[strands] = {}, right[strands] = {};
        __builtin_memcpy(left, a + i, unsigned(dim - i) * sizeof(float));
        __builtin_memcpy(right, b + i, unsigned(dim - i) * sizeof(float));
        for (int p = 0; p < parts; ++p)
            sums[p] = sums[p] + simd::load(left + p * simd::lanes) * simd::load(right + p * simd::lanes);
    }
    simd::Floats sixteen[of_sixteen];
    for (int p = 0; p < of_sixteen; ++p)
        sixteen[p] = (sums[p] + sums[p + of_sixteen]) + (sums[p + 2 * of_sixteen] + sums[p + 3 * of_sixteen]);
    return simd::sum(of_sixteen == 1 ? sixteen[0] : sixteen[0] + sixteen[of_sixteen - 1]);
}

// Rows that are far from each other in memory: those of the products to come are on their way while one is computed.
void short_dots(const RowPair* pairs, int n, int dim, float* products) {
    constexpr int ahead = 2;
    for (int i = 0; i < n; ++i) {
        if (i + ahead < n) {
            prefetch_row(pairs[i + ahead].left, dim);
            prefetch_row(pairs[i + ahead].right, dim);
        }
        products[i] = short_dot(pairs[i].left, pairs[i].right, dim);
    }
}

// In double precision, for numbers whose products float32 would lose.
double long_dot(const float* a, const float* b, int dim) {
    constexpr int strands = 16;
    double sums[strands] = {};
    int i = 0;
    for (; i + strands <= dim; i += strands)
        for (int s = 0; s < strands; ++s) sums[s] += double(a[i + s]) * double(b[i + s]);
    for (int s = 0; i < dim; ++i, ++s) sums[s] += double(a[i]) * double(b[i]);
    for (int half = strands / 2; half > 0; half /= 2)
        for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
    return sums[0];
}

constexpr Sieve sieve{simd::grain, coarsen, sift, sift_tiles, short_dot, short_dots, long_dot};

}  // namespace
