// The forward pass for this instruction set; CMakeLists.txt has its compiler flags.
#include "model.hpp"

#include "simd_portable.hpp"

#include "functions.hpp"

#include "products.hpp"

#include "sifting.hpp"

#include "attention.hpp"

#include "forward.hpp"

const gemel::Kernels& gemel::portable_kernels() {
    static const Kernels kernels = named("portable");
    return kernels;
}
