// The forward pass for this instruction set; CMakeLists.txt has its compiler flags.
#include "model.hpp"

#include "simd_avx512.hpp"

#include "functions.hpp"

#include "products.hpp"

#include "sifting.hpp"

#include "attention.hpp"

#include "forward.hpp"

const gemel::Kernels& gemel::avx512_vnni_kernels() {
    static const Kernels kernels = named("avx512_vnni");
    return kernels;
}
