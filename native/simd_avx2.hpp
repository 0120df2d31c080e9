// Eight floats at once: AVX2 with FMA, and VNNI where GEMEL_AVX_VNNI is defined.
#pragma once
#include <immintrin.h>

namespace {  // each instruction set has functions of its own: a linker must never choose between them
namespace simd {

constexpr int lanes = 8;
using Floats = __m256;
using Ints = __m256i;

inline Floats load(const float* from) { return _mm256_loadu_ps(from); }
inline Ints load(const int32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
inline void store(int32_t* to, Ints x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }
inline Floats all(float x) { return _mm256_set1_ps(x); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
// c - a * b
inline Floats less_product(Floats c, Floats a, Floats b) { return _mm256_fnmadd_ps(a, b, c); }
// |x|, but at most `limit`
inline Floats magnitude(Floats x, Floats limit) {
    return _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), limit);
}
inline Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
// A bit for each lane in which x is at least the floor.
inline uint32_t reaching(Floats x, Floats floor) { return uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(x, floor, _CMP_GE_OQ))); }
inline Floats to_floats(Ints x) { return _mm256_cvtepi32_ps(x); }
inline Floats rounded(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// x times two to the n, n whole and from -127 (which gives zero) to 127
inline Floats scaled(Floats x, Floats n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

inline float sum(Floats x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
inline float largest(Floats x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
inline float smallest(Floats x) {
    __m128 half = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_min_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_min_ss(half, _mm_movehdup_ps(half)));
}

// The nearest whole numbers, as bytes; x is within half a step of 0 to 255.
inline void store_bytes(uint8_t* to, Floats x) {
    const __m256i whole = _mm256_cvtps_epi32(x);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}
// 64 numbers, each times factor plus offset, as bytes.
inline void store_64_bytes(uint8_t* to, const float* from, Floats factor, Floats offset) {
    for (int i = 0; i < 64; i += lanes) store_bytes(to + i, fma(load(from + i), factor, offset));
}
// The lanes from `n` on replaced by `other`.
inline Floats first(int n, Floats x, Floats other) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i taken = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(taken));
}

inline void transpose(const float* from, int64_t stride, float* to, int64_t to_stride) {
    for (int column = 0; column < 16; ++column)
        for (int row = 0; row < 16; ++row) to[column * to_stride + row] = from[row * stride + column];
}

constexpr int attention_rows = 4;
constexpr int attention_queries = 16;

constexpr int tile_rows = 6;
constexpr int columns_at_once = 16;  // two registers a row

#if defined(GEMEL_AVX_VNNI)
// As assembly for the same reason as with AVX-512: the sums of the intrinsic are spilt to the stack.
inline void add_products(__m256i& sum, __m256i unsigned_bytes, __m256i signed_bytes) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(unsigned_bytes), "x"(signed_bytes));
}

template <int Rows, class Take>
__attribute__((noinline)) void tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth,
                                    gemel::Ahead ahead, Take take) {
    for (int column = 0; column < 64; column += columns_at_once) {
        __m256i sum[Rows][2];
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
        const int8_t* weights = panel + column * 4;
        for (int k = 0; k < depth; k += 4, weights += 256) {
            ahead.fetch();
            const __m256i w0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
            const __m256i w1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32));
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r) {
                int32_t four;
                __builtin_memcpy(&four, rows + r * stride + k, 4);
                const __m256i x = _mm256_set1_epi32(four);
                add_products(sum[r][0], x, w0);
                add_products(sum[r][1], x, w1);
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < 2; ++c) take(r, column + c * lanes, sum[r][c]);
    }
}
// Rows are compared by the same products as they are multiplied.
constexpr gemel::Grain grain{127, 128, 0};

template <int Rows, class Take>
void coarse_tile(const uint8_t* rows, int64_t stride, const gemel::Panel& panel, gemel::Ahead ahead, Take take) {
    tile<Rows>(rows, stride, panel.bytes, panel.depth, ahead, take);
}
#else
// Without VNNI bytes are multiplied as words: vpmaddubsw saturates at 16 bits, and getting around that takes four
// multiplications where two of words do. The sums are the same to the bit.
constexpr int words_at_once = 1024;  // of a row: six of them stay in the nearest cache

// The bytes of a row as words.
inline void widen(const uint8_t* bytes, int n, int16_t* words) {
    int k = 0;
    for (; k + 16 <= n; k += 16) {
        const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + k));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + k), _mm256_cvtepu8_epi16(sixteen));
    }
    for (; k < n; ++k) words[k] = bytes[k];
}
inline __m256i widened(const int8_t* sixteen) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
}
// Adds four words of a row, times those of eight columns, to two sums for each column. As assembly: the compiler
// would spill the sums, and a register that holds products as well as the words is one that they can have.
inline void add_products(__m256i& low, __m256i& high, const int16_t* four, __m256i low_weights, __m256i high_weights) {
    __m256i words, products;
    asm("vpbroadcastq %4, %2\n\t"
        "vpmaddwd %6, %2, %3\n\t"
        "vpmaddwd %5, %2, %2\n\t"
        "vpaddd %3, %1, %1\n\t"
        "vpaddd %2, %0, %0"
        : "+x"(low), "+x"(high), "=&x"(words), "=&x"(products)
        : "m"(*reinterpret_cast<const int16_t(*)[4]>(four)), "x"(low_weights), "x"(high_weights));
}
// The eight sums of eight columns out of their sixteen halves.
inline __m256i joined(__m256i low, __m256i high) { return _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8); }

template <int Rows, class Take>
__attribute__((noinline)) void tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth,
                                    gemel::Ahead ahead, Take take) {
    alignas(32) int16_t words[Rows * words_at_once];
    __m256i kept[64 / lanes][Rows][2];  // of a deep row: the sums of what has been widened before
    for (int begin = 0; begin < depth; begin += words_at_once) {
        const int n = depth - begin < words_at_once ? depth - begin : words_at_once;
        for (int r = 0; r < Rows; ++r) widen(rows + r * stride + begin, n, words + r * words_at_once);
        for (int column = 0; column < 64; column += lanes) {
            __m256i sum[Rows][2];
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r)
                for (int half = 0; half < 2; ++half)
                    sum[r][half] = begin ? kept[column / lanes][r][half] : _mm256_setzero_si256();
            const int8_t* weights = panel + begin * 64 + column * 4;
            for (int k = 0; k < n; k += 4, weights += 256) {
                if (column == 0) ahead.fetch();  // once is enough
                const __m256i low = widened(weights), high = widened(weights + 16);
#pragma GCC unroll 6
                for (int r = 0; r < Rows; ++r) add_products(sum[r][0], sum[r][1], words + r * words_at_once + k, low, high);
            }
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r) {
                if (begin + n == depth) take(r, column, joined(sum[r][0], sum[r][1]));
                else kept[column / lanes][r][0] = sum[r][0], kept[column / lanes][r][1] = sum[r][1];
            }
        }
    }
}
// To be compared, rows are made of fewer steps: pairs of products then fit in the 16 bits of vpmaddubsw, which does
// twice as much at a time, and so do sums of 64 products in two halves.
constexpr gemel::Grain grain{90, 90, 64};

inline void add_narrow_products(__m256i& left, __m256i& right, const uint8_t* four, __m256i left_weights, __m256i right_weights) {
    __m256i bytes, products;
    asm("vpbroadcastd %4, %2\n\t"
        "vpmaddubsw %6, %2, %3\n\t"
        "vpmaddubsw %5, %2, %2\n\t"
        "vpaddw %3, %1, %1\n\t"
        "vpaddw %2, %0, %0"
        : "+x"(left), "+x"(right), "=&x"(bytes), "=&x"(products)
        : "m"(*reinterpret_cast<const uint8_t(*)[4]>(four)), "x"(left_weights), "x"(right_weights));
}

template <int Rows, class Take>
__attribute__((noinline)) void coarse_tile(const uint8_t* rows, int64_t stride, const gemel::Panel& panel,
                                           gemel::Ahead ahead, Take take) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int column = 0; column < 64; column += columns_at_once) {
        __m256i whole[Rows][2] = {};
        const int8_t* weights = panel.bytes + column * 4;
        const int16_t* beginning = panel.beginning + column * 2;
        for (int begin = 0; begin < panel.depth; begin += grain.group, beginning += 128) {
            const int end = begin + grain.group < panel.depth ? begin + grain.group : panel.depth;
            __m256i sum[Rows][2];
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r)
                for (int c = 0; c < 2; ++c) sum[r][c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(beginning + c * 16));
            for (int k = begin; k < end; k += 4, weights += 256) {
                if (column == 0) ahead.fetch();  // once is enough
                const __m256i left = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
                const __m256i right = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32));
#pragma GCC unroll 6
                for (int r = 0; r < Rows; ++r) add_narrow_products(sum[r][0], sum[r][1], rows + r * stride + k, left, right);
            }
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r)
                for (int c = 0; c < 2; ++c) whole[r][c] = _mm256_add_epi32(whole[r][c], _mm256_madd_epi16(sum[r][c], ones));
        }
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < 2; ++c) take(r, column + c * lanes, whole[r][c]);
    }
}
#endif

template <int Rows, class Take>
__attribute__((noinline)) void tile(const float* rows, int64_t stride, const float* panel, int depth,
                                    gemel::Ahead ahead,
                                    Take take) {
    for (int column = 0; column < 64; column += columns_at_once) {
        __m256 sum[Rows][2];
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
        const float* weights = panel + column;
        for (int k = 0; k < depth; ++k, weights += 64) {
            ahead.fetch();
            const __m256 w0 = _mm256_loadu_ps(weights), w1 = _mm256_loadu_ps(weights + 8);
#pragma GCC unroll 6
            for (int r = 0; r < Rows; ++r) {
                const __m256 x = _mm256_set1_ps(rows[r * stride + k]);
                sum[r][0] = _mm256_fmadd_ps(x, w0, sum[r][0]);
                sum[r][1] = _mm256_fmadd_ps(x, w1, sum[r][1]);
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < 2; ++c) take(r, column + c * lanes, sum[r][c]);
    }
}

}  // namespace simd
}  // namespace
