#include "axes.hpp"

#include "coarse.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace gemel {
namespace {

constexpr double most_skew = 1e-4;

// The length of what the products of all directions differ from those of axes, as one row of numbers.
double skew_of(const float* directions, int n_axes, int dim) {
    double square = 0.0;
    for (int a = 0; a < n_axes; ++a)
        for (int b = 0; b <= a; ++b) {
            double product = a == b ? -1.0 : 0.0;
            for (int i = 0; i < dim; ++i) product += double(directions[int64_t(a) * dim + i]) * double(directions[int64_t(b) * dim + i]);
            square += product * product * (a == b ? 1.0 : 2.0);
        }
    return std::sqrt(square) * (1.0 + 1e-6);
}

}  // namespace

Axes::Axes(const float* directions, int n_axes, int dim)
    : linear(float_linear(store, {directions, nullptr, n_axes, dim})), n_axes(n_axes) {
    skew = skew_of(directions, n_axes, dim);
    if (!(skew < most_skew)) throw std::invalid_argument("axes must have length one and stand at right angles");
    rounding = std::sqrt(double(n_axes)) * double(dim + 8) / (1 << 24) * 1.01;
}

const float* Axes::project(const Kernels& kernels, const float* rows, int n_rows, float* room) const {
    const int dim = linear.n_inputs;
    float* padded = room;
    float* out = room + int64_t(n_rows) * linear.depth;
    for (int r = 0; r < n_rows; ++r) {
        std::memcpy(padded + int64_t(r) * linear.depth, rows + int64_t(r) * dim, size_t(dim) * sizeof(float));
        std::fill(padded + int64_t(r) * linear.depth + dim, padded + int64_t(r + 1) * linear.depth, 0.0f);
    }
    kernels.linear(linear, padded, n_rows, out);
    return out;
}

double Axes::beside(double square, double along) const {
    const double off = (2.1 + rounding) * rounding + 1.1 * skew + score_rounding(linear.n_inputs);
    return std::sqrt(std::max(0.0, square - along) + off * square);
}

}  // namespace gemel
