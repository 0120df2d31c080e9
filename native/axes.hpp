// A few directions at right angles, along which most of what rows have in common lies.
//
// The product of two rows is the product of what they are along the axes, and the product of what they have beside
// them, which by the inequality of Cauchy and Schwarz is no more than the product of two lengths. Most pairs are ruled
// out by that alone, at the cost of as many bytes as there are axes.
#pragma once

#include "weights.hpp"

namespace gemel {

class Axes {
  public:
    // directions: (n_axes, dim), each of length one and at right angles to the others, as far as float32 can tell.
    Axes(const float* directions, int n_axes, int dim);
    Axes(const Axes&) = delete;  // the panels point into the store

    int size() const { return n_axes; }
    int dim() const { return linear.n_inputs; }
    // What numbers `project` needs for so many rows.
    size_t room(int n_rows) const { return size_t(n_rows) * size_t(linear.depth + linear.width()); }
    // Rows (n, dim) along the axes. The result, in `room`, has `stride()` numbers a row.
    const float* project(const Kernels&, const float* rows, int n_rows, float* room) const;
    int64_t stride() const { return linear.width(); }
    // No row whose square is `square`, and that along the axes `along`, is longer beside them.
    double beside(double square, double along) const;
    // How far the product along the axes and that beside them may be from the product of two rows of length one.
    double missed() const { return (2.1 + rounding) * rounding + 3.2 * skew; }

  private:
    Store store;
    Linear linear;
    const int n_axes;
    double rounding = 0.0;  // how far off a projection may be, as a share of the row's length
    double skew = 0.0;      // how far the axes are from right angles and from length one
};

}  // namespace gemel
