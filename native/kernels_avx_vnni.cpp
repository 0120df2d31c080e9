// The forward pass for this instruction set; CMakeLists.txt has its compiler flags.
#define GEMEL_AVX_VNNI
#include "model.hpp"

#include "simd_avx2.hpp"

#include "functions.hpp"

#include "products.hpp"

#include "sifting.hpp"

#include "attention.hpp"

#include "forward.hpp"

const gemel::Kernels& gemel::avx_vnni_kernels() {
    static const Kernels kernels = named("avx_vnni");
    return kernels;
}
