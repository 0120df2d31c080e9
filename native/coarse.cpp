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

void CoarsePanels::reset(int n_panels, int new_depth, const Grain& new_grain) {
    depth = new_depth;
    grain = new_grain;
    n_groups = grain.group ? (depth + grain.group - 1) / grain.group : 0;
    beginnings.assign(size_t(n_panels) * size_t(n_groups) * 2 * panel_width, 0);
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
    for (int k = 0; k < depth; k += 4) std::memcpy(to + k * panel_width, row + k, 4);
    const size_t at = size_t(panel) * panel_width + size_t(column);
    steps[at] = coarse.step;
    if (n_groups) {
        begin_sums(panel, column, row);
    } else {
        int64_t sum = 0;
        for (int i = 0; i < depth; ++i) sum += row[i];
        shifts[at] = float(-double(grain.raise) * double(sum) * double(coarse.step));
    }
    bounds[size_t(panel)].take(coarse.length, coarse.rest, double(coarse.step));
}

// Sums of 16 bits begin with what they will have too much, and may run over on their way: where they end is within 16 bits.
void CoarsePanels::begin_sums(int panel, int column, const int8_t* row) {
    int16_t* to = beginnings.data() + int64_t(panel) * n_groups * 2 * panel_width + column * 2;
    for (int group = 0; group < n_groups; ++group, to += 2 * panel_width) {
        int sums[4] = {};
        for (int i = group * grain.group; i < std::min((group + 1) * grain.group, depth); i += 4)
            for (int s = 0; s < 4; ++s) sums[s] += row[i + s];
        for (int half = 0; half < 2; ++half) to[half] = int16_t(uint16_t(-grain.raise * (sums[2 * half] + sums[2 * half + 1])));
    }
}

void CoarseRows::reset(int64_t n_rows, int new_depth, const Grain& grain) {
    depth = new_depth;
    raise = grain.raise;
    bytes.assign(size_t(n_rows) * size_t(depth), uint8_t(raise));
    for (std::vector<double>* each : {&step, &inverse, &rest, &reach}) each->resize(size_t(n_rows));
}

void CoarseRows::put(int64_t row, const int8_t* from, const Coarse& coarse) {
    uint8_t* to = bytes.data() + row * depth;
    for (int i = 0; i < depth; ++i) to[i] = uint8_t(from[i] + raise);
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
