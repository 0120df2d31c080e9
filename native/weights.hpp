// Weights in the order in which the kernels read them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "model.hpp"

namespace gemel {

struct FreeMemory {
    void operator()(void* memory) const;
};
using Memory = std::unique_ptr<void, FreeMemory>;

// Zeroed and aligned; in large pages where there are some, for fewer address translations.
Memory zeroed_memory(size_t n_bytes);

// Memory that lives as long as the model, handed out in pieces.
class Store {
  public:
    template <class T>
    T* take(size_t count) {
        return static_cast<T*>(take_bytes(count * sizeof(T)));
    }
    float* copy(const float* from, size_t count, size_t room);
    size_t n_bytes() const { return total; }

  private:
    void* take_bytes(size_t n_bytes);  // zeroed, aligned to a cache line
    std::vector<Memory> slabs;
    size_t total = 0, n_free = 0;
    char* free = nullptr;
};

struct Matrix {
    const float* weights;  // (n_outputs, n_inputs)
    const float* bias;     // (n_outputs) or null
    int n_outputs, n_inputs;
};

Linear float_linear(Store&, const Matrix&);
// Weights of an output (and a group of its inputs) share a scale: their largest becomes 127.
Linear int8_linear(Store&, const Matrix&, int n_groups);

}  // namespace gemel
