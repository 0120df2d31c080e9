#include "weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gemel {
namespace {

constexpr size_t large_page = size_t(2) << 20, cache_line = 64;

// In integers, which compilers do many at a time: NaN and infinity are those whose exponent is all ones.
bool all_finite(const float* values, size_t n) {
    constexpr uint32_t exponent = 0x7f800000;
    uint32_t is_odd = 0;
    for (size_t i = 0; i < n; ++i) {
        uint32_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        is_odd |= (bits & exponent) == exponent;
    }
    return !is_odd;
}

Linear outline(Store& store, const Matrix& matrix) {
    // Rounded to int8 they would become ordinary numbers, and nobody would see it.
    if (!all_finite(matrix.weights, size_t(matrix.n_outputs) * matrix.n_inputs) ||
        (matrix.bias && !all_finite(matrix.bias, size_t(matrix.n_outputs))))
        throw std::invalid_argument("a matrix holds numbers that are not finite");
    Linear linear;
    linear.n_outputs = matrix.n_outputs;
    linear.n_inputs = matrix.n_inputs;
    linear.n_panels = rounded_up(matrix.n_outputs, panel_width) / panel_width;
    linear.depth = rounded_up(matrix.n_inputs, row_alignment);
    float* bias = store.take<float>(size_t(linear.width()));
    if (matrix.bias) std::copy_n(matrix.bias, matrix.n_outputs, bias);
    linear.bias = bias;
    return linear;
}

float largest_magnitude(const float* values, int n) {
    float largest = 0.0f;
    for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(values[i]));
    return largest;
}

}  // namespace

void FreeMemory::operator()(void* memory) const { std::free(memory); }

Memory zeroed_memory(size_t n_bytes) {
    const bool is_large = n_bytes >= large_page / 2;
    const size_t alignment = is_large ? large_page : cache_line;
    const size_t room = std::max<size_t>((n_bytes + alignment - 1) / alignment * alignment, alignment);
    Memory memory(std::aligned_alloc(alignment, room));
    if (!memory) throw std::bad_alloc();
#if defined(__linux__)
    if (is_large) madvise(memory.get(), room, MADV_HUGEPAGE);  // a wish: without it all works the same
#endif
    std::memset(memory.get(), 0, room);
    return memory;
}

void* Store::take_bytes(size_t n_bytes) {
    n_bytes = std::max((n_bytes + cache_line - 1) / cache_line * cache_line, cache_line);
    if (n_bytes > n_free) {
        const size_t size = (std::max(n_bytes, large_page) + large_page - 1) / large_page * large_page;
        slabs.push_back(zeroed_memory(size));
        free = static_cast<char*>(slabs.back().get());
        n_free = size;
        total += size;
    }
    char* taken = free;
    free += n_bytes;
    n_free -= n_bytes;
    return taken;
}

float* Store::copy(const float* from, size_t count, size_t room) {
    float* to = take<float>(std::max(count, room));
    std::copy_n(from, count, to);
    return to;
}

Linear float_linear(Store& store, const Matrix& matrix) {
    Linear linear = outline(store, matrix);
    float* panels = store.take<float>(size_t(linear.width()) * linear.depth);
    for (int j = 0; j < matrix.n_outputs; ++j) {
        float* column = panels + size_t(j / panel_width) * linear.depth * panel_width + j % panel_width;
        const float* row = matrix.weights + size_t(j) * matrix.n_inputs;
        for (int k = 0; k < matrix.n_inputs; ++k) column[size_t(k) * panel_width] = row[k];
    }
    linear.float_panels = panels;
    return linear;
}

Linear int8_linear(Store& store, const Matrix& matrix, int n_groups) {
    Linear linear = outline(store, matrix);
    linear.n_groups = n_groups;
    const int group = linear.depth / n_groups;
    int8_t* panels = store.take<int8_t>(size_t(linear.width()) * linear.depth);
    float* scales = store.take<float>(size_t(linear.width()) * n_groups);
    float* sums = store.take<float>(size_t(linear.width()));
    for (int j = 0; j < matrix.n_outputs; ++j) {
        const int panel = j / panel_width, column = j % panel_width;
        const float* row = matrix.weights + size_t(j) * matrix.n_inputs;
        int8_t* to = panels + size_t(panel) * linear.depth * panel_width + column * 4;
        double sum = 0.0;
        for (int g = 0; g < n_groups; ++g) {
            const int begin = g * group, end = std::min(begin + group, matrix.n_inputs);
            if (begin >= end) continue;
            const float scale = largest_magnitude(row + begin, end - begin) / 127.0f;
            const float steps = scale > 0.0f ? 1.0f / scale : 0.0f;
            int64_t total = 0;
            for (int k = begin; k < end; ++k) {
                const int value = std::clamp(int(std::lrintf(row[k] * steps)), -127, 127);
                to[size_t(k / 4) * panel_width * 4 + k % 4] = int8_t(value);
                total += value;
            }
            scales[(size_t(panel) * n_groups + g) * panel_width + column] = scale;
            sum += double(total) * scale;
        }
        sums[j] = float(sum);
    }
    linear.int8_panels = panels;
    linear.scales = scales;
    linear.sums = sums;
    return linear;
}

}  // namespace gemel
