// What follows the last layer: pooling, Dense layers, unit length.
#pragma once

#include <vector>

#include "model.hpp"
#include "weights.hpp"

namespace gemel {

enum class PoolingMode { cls, max, mean, mean_sqrt_len, weightedmean, lasttoken };
enum class TailActivation { identity, tanh, relu, gelu, sigmoid, silu, elu, leaky_relu, softplus, mish };

struct Pooling {
    std::vector<PoolingMode> modes;  // concatenated in this order
    int n_prompt = 0;                // first tokens that no mode counts
    int n_first = 0, n_last = 0;     // tokens at the ends that the means leave out
};

// One text's token vectors (n, stride) into `out` (modes x hidden).
void pool_tokens(const float* tokens, int n_tokens, int64_t stride, int hidden, const Pooling&, float* out);

class Tail {
  public:
    void add_dense(const Linear&, TailActivation, bool adds_input, const Linear* residual);
    void add_normalisation();
    // Numbers of a finished vector, given those of a pooled one; throws where a layer does not fit.
    int output_dim(int pooled_dim) const;
    // Pooled rows (n, dim) into finished ones, in place of `rows`; returns their dim.
    int apply(const Kernels&, std::vector<float>& rows, int n_rows, int dim) const;

  private:
    struct Step {
        bool normalises = false;
        Linear dense, residual;
        TailActivation activation = TailActivation::identity;
        bool adds_input = false, projects_input = false;
    };
    std::vector<Step> steps;
};

}  // namespace gemel
