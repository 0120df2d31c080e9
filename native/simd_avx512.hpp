// Sixteen floats at once: AVX-512 with VNNI.
#pragma once
#include <immintrin.h>

namespace {  // each instruction set has functions of its own: a linker must never choose between them
namespace simd {

constexpr int lanes = 16;
using Floats = __m512;
using Ints = __m512i;

inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline Ints load(const int32_t* from) { return _mm512_loadu_si512(from); }
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
inline void store(int32_t* to, Ints x) { _mm512_storeu_si512(to, x); }
inline Floats all(float x) { return _mm512_set1_ps(x); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
// c - a * b
inline Floats less_product(Floats c, Floats a, Floats b) { return _mm512_fnmadd_ps(a, b, c); }
// |x|, but at most `limit`
inline Floats magnitude(Floats x, Floats limit) { return _mm512_range_ps(x, limit, 0b1010); }
inline Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
// A bit for each lane in which x is at least the floor.
inline uint32_t reaching(Floats x, Floats floor) { return _mm512_cmp_ps_mask(x, floor, _CMP_GE_OQ); }
inline Floats to_floats(Ints x) { return _mm512_cvtepi32_ps(x); }
inline Floats rounded(Floats x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// x times two to the n, n whole
inline Floats scaled(Floats x, Floats n) { return _mm512_scalef_ps(x, n); }
// Halved again and again, as with all instruction sets; what _mm512_reduce_add_ps does is up to the compiler.
inline float sum(Floats x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(Floats x) { return _mm512_reduce_max_ps(x); }
inline float smallest(Floats x) { return _mm512_reduce_min_ps(x); }
// 64 numbers, each times factor plus offset, as bytes: the nearest whole numbers, within 0 to 255.
inline void store_64_bytes(uint8_t* to, const float* from, Floats factor, Floats offset) {
    const auto whole = [&](int i) { return _mm512_cvtps_epi32(fma(load(from + i), factor, offset)); };
    const __m512i words = _mm512_packus_epi32(whole(0), whole(16)), more = _mm512_packus_epi32(whole(32), whole(48));
    const __m512i bytes = _mm512_packus_epi16(words, more);  // in lanes: four numbers of each vector in turn
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
}
// The lanes from `n` on replaced by `other`.
inline Floats first(int n, Floats x, Floats other) {
    return _mm512_mask_blend_ps(__mmask16((1u << n) - 1), other, x);
}

inline void transpose(const float* from, int64_t stride, float* to, int64_t to_stride) {
    __m512 rows[16], pairs[16];
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_ps(from + i * stride);
    for (int i = 0; i < 8; ++i) {
        pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 4; ++i) {
        const __m512d a = _mm512_castps_pd(pairs[4 * i]), b = _mm512_castps_pd(pairs[4 * i + 2]);
        const __m512d c = _mm512_castps_pd(pairs[4 * i + 1]), d = _mm512_castps_pd(pairs[4 * i + 3]);
        rows[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        rows[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        rows[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
        rows[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
    }
    for (int i = 0; i < 4; ++i) {
        pairs[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
        pairs[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
        pairs[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
        pairs[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; ++i) {
        _mm512_storeu_ps(to + i * to_stride, _mm512_shuffle_f32x4(pairs[i], pairs[i + 8], 0x88));
        _mm512_storeu_ps(to + (i + 8) * to_stride, _mm512_shuffle_f32x4(pairs[i], pairs[i + 8], 0xdd));
    }
}

// GCC 12 spills the sums of the intrinsic to the stack, which halves the speed of a tile.
inline void add_products(__m512i& sum, __m512i unsigned_bytes, __m512i signed_bytes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Tiles: up to six rows by a whole panel, every sum in a register of its own until take(row, column, sum).
constexpr int tile_rows = 6;
constexpr int attention_rows = 8;
constexpr int attention_queries = 32;

template <int Rows, class Take>
__attribute__((noinline)) void tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth,
                                    gemel::Ahead ahead, Take take) {
    __m512i sum[Rows][4];
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_setzero_si512();
    for (int k = 0; k < depth; k += 4, panel += 256) {
        ahead.fetch();
        const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
        const __m512i w2 = _mm512_loadu_si512(panel + 128), w3 = _mm512_loadu_si512(panel + 192);
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) {
            int32_t four;
            __builtin_memcpy(&four, rows + r * stride + k, 4);
            const __m512i x = _mm512_set1_epi32(four);
            add_products(sum[r][0], x, w0);
            add_products(sum[r][1], x, w1);
            add_products(sum[r][2], x, w2);
            add_products(sum[r][3], x, w3);
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c)
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) take(r, c * 16, sum[r][c]);
}

template <int Rows, class Take>
__attribute__((noinline)) void tile(const float* rows, int64_t stride, const float* panel, int depth,
                                    gemel::Ahead ahead, Take take) {
    __m512 sum[Rows][4];
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) sum[r][c] = _mm512_setzero_ps();
    for (int k = 0; k < depth; ++k, panel += 64) {
        ahead.fetch();
        const __m512 w0 = _mm512_loadu_ps(panel), w1 = _mm512_loadu_ps(panel + 16);
        const __m512 w2 = _mm512_loadu_ps(panel + 32), w3 = _mm512_loadu_ps(panel + 48);
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) {
            const __m512 x = _mm512_set1_ps(rows[r * stride + k]);
            sum[r][0] = _mm512_fmadd_ps(x, w0, sum[r][0]);
            sum[r][1] = _mm512_fmadd_ps(x, w1, sum[r][1]);
            sum[r][2] = _mm512_fmadd_ps(x, w2, sum[r][2]);
            sum[r][3] = _mm512_fmadd_ps(x, w3, sum[r][3]);
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c)
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) take(r, c * 16, sum[r][c]);
}

// Rows are compared by the same products as they are multiplied.
constexpr gemel::Grain grain{127, 128, 0};

template <int Rows, class Take>
void coarse_tile(const uint8_t* rows, int64_t stride, const gemel::Panel& panel, gemel::Ahead ahead, Take take) {
    tile<Rows>(rows, stride, panel.bytes, panel.depth, ahead, take);
}

}  // namespace simd
}  // namespace
