// Rows as bytes, on either side of a comparison, and how far their products may be from those of the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "model.hpp"

namespace gemel {

// What no column of some panels exceeds.
struct ColumnBounds {
    double longest = 0.0, rest = 0.0, step = 0.0;

    void take(double length, double other_rest, double other_step);
};

// Columns, in panels of 64.
struct CoarsePanels {
    int depth = 0, n_groups = 0;  // groups: of what is summed in 16 bits
    Grain grain{};
    std::vector<int8_t> bytes;  // (panel, depth / 4, 64, 4)
    std::vector<float> steps, shifts;
    std::vector<int16_t> beginnings;   // (panel, group, 64, 2)
    std::vector<ColumnBounds> bounds;  // of each panel

    void reset(int n_panels, int depth, const Grain&);
    void put(int panel, int column, const int8_t* row, const Coarse&);
    const int8_t* panel_bytes(int panel) const { return bytes.data() + int64_t(panel) * depth * panel_width; }
    ColumnBounds bounds_of(int first_panel, int end) const;
    Panel panel(int number) const {
        return {panel_bytes(number), steps.data() + number * panel_width, shifts.data() + number * panel_width, beginning(number), depth};
    }

  private:
    const int16_t* beginning(int panel) const {
        return n_groups ? beginnings.data() + int64_t(panel) * n_groups * 2 * panel_width : nullptr;
    }
    void begin_sums(int panel, int column, const int8_t* row);
};

// Rows that are compared with columns.
struct CoarseRows {
    int depth = 0, raise = 0;
    std::vector<uint8_t> bytes;                      // raised
    std::vector<double> step, inverse, rest, reach;  // of each row; reach is its length and its rest's

    void reset(int64_t n_rows, int depth, const Grain&);
    void put(int64_t row, const int8_t* bytes, const Coarse&);
    RaisedRows rows(int64_t first, int n) const { return {bytes.data() + first * depth, depth, n}; }
    // For the rows from the first on what a product of bytes with any column must reach, in steps of the row, for the
    // product of the rows to reach the floor. `more` is what else a product with a row of length one may have;
    // `lengths` are those of all rows.
    void lower(int64_t first, int n, const ColumnBounds&, const double* lengths, double more, float* floors) const;
};

// What rounding may add to a score, which is at most the product of the lengths: as often as a strand has terms.
inline double score_rounding(int64_t depth) { return double(depth / 64 + 16) / (1 << 23); }

}  // namespace gemel
