#include "ceiling.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gemel {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr int depth = 384, most_rows = 8, tiles_between_looks = 200;

double seconds_since(clock_type::time_point start) {
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

// Tiles a second on one thread.
double tile_rate(const Kernels& kernels, bool is_int8, double seconds) {
    std::vector<uint8_t> bytes(most_rows * depth, 100);
    std::vector<int8_t> byte_panel(size_t(depth) * panel_width, 3);
    std::vector<float> floats(most_rows * depth, 1.0f), float_panel(is_int8 ? 1 : size_t(depth) * panel_width, 0.5f);
    std::vector<int32_t> int_sums(most_rows * panel_width);
    std::vector<float> float_sums(most_rows * panel_width);
    int64_t n_tiles = 0;
    const auto start = clock_type::now();
    do {
        for (int i = 0; i < tiles_between_looks; ++i) {
            if (is_int8) kernels.int8_tile(bytes.data(), depth, byte_panel.data(), depth, int_sums.data());
            else kernels.float_tile(floats.data(), depth, float_panel.data(), depth, float_sums.data());
        }
        n_tiles += tiles_between_looks;
    } while (seconds_since(start) < seconds);
    return double(n_tiles) / seconds_since(start);
}

}  // namespace

double tile_ceiling(const Kernels& kernels, bool is_int8, int n_threads, double seconds) {
    std::vector<double> rates(static_cast<size_t>(n_threads));
    std::vector<std::thread> threads;
    for (double& rate : rates) threads.emplace_back([&] { rate = tile_rate(kernels, is_int8, seconds); });
    for (std::thread& thread : threads) thread.join();
    double total = 0.0;
    for (double rate : rates) total += rate;
    return total * 2.0 * kernels.tile_rows * panel_width * depth;
}

}  // namespace gemel
