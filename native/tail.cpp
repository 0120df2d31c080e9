#include "tail.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace gemel {
namespace {

Span counted(int n_tokens, int n_first, int n_last) {
    const Span span{n_first, n_tokens - n_last};
    return span.begin < span.end ? span : Span{0, n_tokens};  // a text with nothing that counts counts whole
}

template <class Weight>
void add_weighted(const float* tokens, Span span, int64_t stride, int hidden, float divisor, Weight weight, float* out) {
    std::fill_n(out, hidden, 0.0f);
    for (int t = span.begin; t < span.end; ++t)
        for (int i = 0; i < hidden; ++i) out[i] += weight(t) * tokens[t * stride + i];
    for (int i = 0; i < hidden; ++i) out[i] /= divisor;
}

void pool_mode(PoolingMode mode, const float* tokens, Span all, Span means, int64_t stride, int hidden, float* out) {
    const float n = float(means.end - means.begin);
    switch (mode) {
        case PoolingMode::cls: std::copy_n(tokens + all.begin * stride, hidden, out); break;
        case PoolingMode::lasttoken: std::copy_n(tokens + (all.end - 1) * stride, hidden, out); break;
        case PoolingMode::max:
            std::fill_n(out, hidden, -std::numeric_limits<float>::infinity());
            for (int t = all.begin; t < all.end; ++t)
                for (int i = 0; i < hidden; ++i) out[i] = std::max(out[i], tokens[t * stride + i]);
            break;
        case PoolingMode::mean:
            add_weighted(tokens, means, stride, hidden, n, [](int) { return 1.0f; }, out);
            break;
        case PoolingMode::mean_sqrt_len:
            add_weighted(tokens, means, stride, hidden, std::sqrt(n), [](int) { return 1.0f; }, out);
            break;
        case PoolingMode::weightedmean: {
            const float total = float(int64_t(means.begin + 1 + means.end) * (means.end - means.begin) / 2);
            add_weighted(tokens, means, stride, hidden, total, [](int t) { return float(t + 1); }, out);
            break;
        }
    }
}

float activated(TailActivation activation, float x) {
    const auto softplus = [](float y) { return y > 20.0f ? y : std::log1p(std::exp(y)); };
    switch (activation) {
        case TailActivation::identity: return x;
        case TailActivation::tanh: return std::tanh(x);
        case TailActivation::relu: return std::max(x, 0.0f);
        case TailActivation::gelu: return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
        case TailActivation::sigmoid: return 1.0f / (1.0f + std::exp(-x));
        case TailActivation::silu: return x / (1.0f + std::exp(-x));
        case TailActivation::elu: return x > 0.0f ? x : std::expm1(x);
        case TailActivation::leaky_relu: return x > 0.0f ? x : 0.01f * x;
        case TailActivation::softplus: return softplus(x);
        case TailActivation::mish: return x * std::tanh(softplus(x));
    }
    return x;
}

void normalise_rows(std::vector<float>& rows, int n_rows, int dim) {
    for (int r = 0; r < n_rows; ++r) {
        float* row = rows.data() + int64_t(r) * dim;
        double squares = 0.0;
        for (int i = 0; i < dim; ++i) squares += double(row[i]) * row[i];
        const float length = std::max(float(std::sqrt(squares)), 1e-12f);
        for (int i = 0; i < dim; ++i) row[i] /= length;
    }
}

// W x + b of each row, without the filling at the ends of rows.
std::vector<float> product(const Kernels& kernels, const Linear& linear, const std::vector<float>& rows, int n_rows) {
    std::vector<float> padded(size_t(n_rows) * linear.depth), wide(size_t(n_rows) * linear.width());
    for (int r = 0; r < n_rows; ++r)
        std::copy_n(rows.data() + int64_t(r) * linear.n_inputs, linear.n_inputs, padded.data() + int64_t(r) * linear.depth);
    kernels.linear(linear, padded.data(), n_rows, wide.data());
    std::vector<float> out(size_t(n_rows) * linear.n_outputs);
    for (int r = 0; r < n_rows; ++r)
        std::copy_n(wide.data() + int64_t(r) * linear.width(), linear.n_outputs, out.data() + int64_t(r) * linear.n_outputs);
    return out;
}

}  // namespace

void pool_tokens(const float* tokens, int n_tokens, int64_t stride, int hidden, const Pooling& pooling, float* out) {
    const Span all = counted(n_tokens, pooling.n_prompt, 0);
    const Span means = counted(n_tokens, std::max(pooling.n_prompt, pooling.n_first), pooling.n_last);
    for (PoolingMode mode : pooling.modes) {
        pool_mode(mode, tokens, all, means, stride, hidden, out);
        out += hidden;
    }
}

void Tail::add_dense(const Linear& dense, TailActivation activation, bool adds_input, const Linear* residual) {
    Step step;
    step.dense = dense;
    step.activation = activation;
    step.adds_input = adds_input;
    step.projects_input = residual != nullptr;
    if (residual) step.residual = *residual;
    steps.push_back(step);
}

void Tail::add_normalisation() {
    Step step;
    step.normalises = true;
    steps.push_back(step);
}

int Tail::output_dim(int dim) const {
    for (const Step& step : steps) {
        if (step.normalises) continue;
        if (step.dense.n_inputs != dim) throw std::invalid_argument("a Dense layer is given vectors of another length");
        const int added = step.projects_input ? step.residual.n_outputs : dim;
        if (step.adds_input && added != step.dense.n_outputs)
            throw std::invalid_argument("a Dense layer's input cannot be added to its output");
        if (step.projects_input && step.residual.n_inputs != dim)
            throw std::invalid_argument("a Dense layer's residual is given vectors of another length");
        dim = step.dense.n_outputs;
    }
    return dim;
}

int Tail::apply(const Kernels& kernels, std::vector<float>& rows, int n_rows, int dim) const {
    for (const Step& step : steps) {
        if (step.normalises) {
            normalise_rows(rows, n_rows, dim);
            continue;
        }
        std::vector<float> out = product(kernels, step.dense, rows, n_rows);
        for (float& x : out) x = activated(step.activation, x);
        if (step.adds_input) {
            const std::vector<float> added = step.projects_input ? product(kernels, step.residual, rows, n_rows) : rows;
            for (size_t i = 0; i < out.size(); ++i) out[i] += added[i];
        }
        rows.swap(out);
        dim = step.dense.n_outputs;
    }
    return dim;
}

}  // namespace gemel
