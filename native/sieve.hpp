// Comparing many rows by bytes: what one instruction set offers for it.
#pragma once

#include <cstdint>

namespace gemel {

// A row in whole steps: x / divisor = step * bytes + rest.
struct Coarse {
    float step = 0.0f;
    double length = 0.0;  // of x / divisor
    double rest = 0.0;    // the length of the rest
};

// How rows become bytes.
struct Grain {
    int most;   // a row's largest number becomes this, or less where sums would be too large
    int raise;  // of the rows' bytes, as the tiles want them
    int group;  // the products of so many numbers go into two sums of 16 bits, by pairs in turn; 0: all into one of 32
};

// Rows of bytes that were raised, as the tiles want them.
struct RaisedRows {
    const uint8_t* bytes;
    int64_t stride;
    int n_rows;
};

// 64 coarse rows side by side.
struct Panel {
    const int8_t* bytes;  // (depth / 4, 64, 4)
    const float* steps;
    // What gives back that the raised rows are too large, -raise (sum of the bytes): for sums of 32 bits, in steps, what
    // comes to their product; for those of 16 bits what they begin with, (groups, 64, 2), or null.
    const float* shifts;
    const int16_t* beginning;
    int depth;
};

// The lengths of what rows, in their steps, and columns have beside the axes along which they are compared.
struct Beside {
    const float* rows;
    const float* columns;
};

struct RowPair {
    const float *left, *right;
};

struct Sieve {
    Grain grain;
    Coarse (*coarsen)(const float* row, int dim, double divisor, int8_t* bytes);
    // For each row the columns of the panel whose product, in steps of the row, reaches the row's floor.
    // `next` is fetched meanwhile.
    void (*sift)(const RaisedRows&, const Panel&, const int8_t* next, const float* floors, uint64_t* found);
    // For each tile of rows whether the product of any of its rows with any column of the panel, together with that of
    // the lengths beside, reaches the row's floor.
    void (*sift_tiles)(const RaisedRows&, const Panel&, const Beside&, const int8_t* next, const float* floors, uint8_t* is_open);
    // The inner product, summed in an order that depends on nothing but `dim`: in float32, off by (dim / 64 + 8)
    // roundings of the product of the lengths at most, and in double precision.
    float (*short_dot)(const float* a, const float* b, int dim);
    void (*short_dots)(const RowPair* pairs, int n, int dim, float* products);
    double (*long_dot)(const float* a, const float* b, int dim);
};

}  // namespace gemel
