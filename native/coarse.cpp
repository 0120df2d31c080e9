#include "coarse.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gemel {
namespace {

constexpr double rounding = 1.0 / (1 << 22);  // a few operations in float32 on a sum of at most depth * 255 * 127 steps
constexpr double underflow = 1e-44;
constexpr double most_float = 3e38;
constexpr double beyond_all = 1e300;  // a row of zeros: its floor is beyond all unless zero reaches it

}  // namespace

void CoarsePanels::reset(int n_panels, int new_depth) {
    depth = new_depth;
    bytes.assign(size_t(n_panels) * size_t(depth) * panel_width, 0);
    steps.assign(size_t(n_panels) * panel_width, 0.0f);
    shifts.assign(size_t(n_panels) * panel_width, 0.0f);
    bounds.assign(size_t(n_panels), {});
}

void ColumnBounds::take(double length, double other_rest, double other_step) {
    longest = std::max(longest, length);
    rest = std::max(rest, other_rest);
    step = std::max(step, other_step);
}

ColumnBounds CoarsePanels::bounds_of(int first_panel, int end) const {
    ColumnBounds all;
    for (int panel = first_panel; panel < end; ++panel) {
        const ColumnBounds& own = bounds[size_t(panel)];
        all.take(own.longest, own.rest, own.step);
    }
    return all;
}

void CoarsePanels::put(int panel, int column, const int8_t* row, const Coarse& coarse) {
    int8_t* to = bytes.data() + int64_t(panel) * depth * panel_width + column * 4;
    int64_t sum = 0;
    for (int i = 0; i < depth; ++i) sum += row[i];
    for (int k = 0; k < depth; k += 4) std::memcpy(to + k * panel_width, row + k, 4);
    const size_t at = size_t(panel) * panel_width + size_t(column);
    steps[at] = coarse.step;
    shifts[at] = float(-128.0 * double(sum) * double(coarse.step));
    bounds[size_t(panel)].take(coarse.length, coarse.rest, double(coarse.step));
}

void CoarseRows::reset(int64_t n_rows, int new_depth) {
    depth = new_depth;
    bytes.assign(size_t(n_rows) * size_t(depth), 128);
    for (std::vector<double>* each : {&step, &inverse, &rest, &reach}) each->resize(size_t(n_rows));
}

void CoarseRows::put(int64_t row, const int8_t* from, const Coarse& coarse) {
    uint8_t* to = bytes.data() + row * depth;
    for (int i = 0; i < depth; ++i) to[i] = uint8_t(from[i] + 128);
    const auto at = size_t(row);
    step[at] = double(coarse.step);
    inverse[at] = coarse.step > 0.0f ? 1.0 / double(coarse.step) : beyond_all;
    rest[at] = coarse.rest;
    reach[at] = coarse.length + coarse.rest;
}

void CoarseRows::lower(int64_t first, int n, const ColumnBounds& columns, const double* lengths, double more, float* floors) const {
    const double longest = columns.longest;
    const double steps = columns.step * (double(depth) * 255.0 * 127.0) * rounding;
    for (int r = 0; r < n; ++r) {
        const auto at = size_t(first + r);
        const auto floor = double(floors[r]);
        const double missed = rest[at] * longest + reach[at] * columns.rest + step[at] * steps + lengths[at] * more;
        const double needed = (floor - std::fabs(floor) * rounding - underflow - missed) * inverse[at];
        const auto nearest = float(needed < -most_float ? -most_float : needed < most_float ? needed : most_float);
        floors[r] = nearest - std::fabs(nearest) * 1.2e-7f - float(underflow);  // to float32, downwards
    }
}

}  // namespace gemel
