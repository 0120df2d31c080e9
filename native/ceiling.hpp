// How fast this machine's matrix products can be at all.
#pragma once

#include "model.hpp"

namespace gemel {

// Operations a second (a product and a sum are two) of the bare tile on operands in the nearest cache,
// on that many threads at once, measured for about that long.
double tile_ceiling(const Kernels&, bool is_int8, int n_threads, double seconds);

}  // namespace gemel
