// Eight floats at once in plain C++, which any compiler turns into whatever its target has.
#pragma once
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

namespace {  // each instruction set has functions of its own: a linker must never choose between them
namespace simd {

constexpr int lanes = 8;

struct Floats {
    float lane[lanes];
};
struct Ints {
    int32_t lane[lanes];
};

template <class Function>
inline Floats each(Function function) {
    Floats out;
    for (int i = 0; i < lanes; ++i) out.lane[i] = function(i);
    return out;
}

inline Floats operator+(Floats a, Floats b) { return each([&](int i) { return a.lane[i] + b.lane[i]; }); }
inline Floats operator-(Floats a, Floats b) { return each([&](int i) { return a.lane[i] - b.lane[i]; }); }
inline Floats operator*(Floats a, Floats b) { return each([&](int i) { return a.lane[i] * b.lane[i]; }); }
inline Floats operator/(Floats a, Floats b) { return each([&](int i) { return a.lane[i] / b.lane[i]; }); }

inline Floats load(const float* from) { return each([&](int i) { return from[i]; }); }
inline Ints load(const int32_t* from) {
    Ints out;
    for (int i = 0; i < lanes; ++i) out.lane[i] = from[i];
    return out;
}
inline void store(float* to, Floats x) {
    for (int i = 0; i < lanes; ++i) to[i] = x.lane[i];
}
inline void store(int32_t* to, Ints x) {
    for (int i = 0; i < lanes; ++i) to[i] = x.lane[i];
}
inline Floats all(float x) { return each([&](int) { return x; }); }
inline float fma(float a, float b, float c) {
#if defined(__ARM_FEATURE_FMA) || defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;  // without the instruction, a fused product would be a call into the library
#endif
}
inline Floats fma(Floats a, Floats b, Floats c) {
    return each([&](int i) { return fma(a.lane[i], b.lane[i], c.lane[i]); });
}
// c - a * b
inline Floats less_product(Floats c, Floats a, Floats b) {
    return each([&](int i) { return fma(-a.lane[i], b.lane[i], c.lane[i]); });
}
// |x|, but at most `limit`
inline Floats magnitude(Floats x, Floats limit) {
    return each([&](int i) {
        const float size = __builtin_fabsf(x.lane[i]);
        return size < limit.lane[i] ? size : limit.lane[i];
    });
}
inline Floats larger(Floats a, Floats b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Floats smaller(Floats a, Floats b) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
// A bit for each lane in which x is at least the floor.
inline uint32_t reaching(Floats x, Floats floor) {
    uint32_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= uint32_t(x.lane[i] >= floor.lane[i]) << i;
    return bits;
}
inline Floats to_floats(Ints x) { return each([&](int i) { return float(x.lane[i]); }); }
// To the nearest whole number, ties to even, for numbers below 2^22: the added constant has no bits left for a rest.
inline Floats rounded(Floats x) { return (x + all(12582912.0f)) - all(12582912.0f); }
// x times two to the n, n whole and from -127 (which gives zero) to 127; lanes that stand beyond a sequence may hold
// anything, also what is no number.
inline Floats scaled(Floats x, Floats n) {
    return each([&](int i) {
        const float above = n.lane[i] > -127.0f ? n.lane[i] : -127.0f, whole = above < 127.0f ? above : 127.0f;
        const int32_t bits = (int32_t(whole) + 127) * (1 << 23);
        float power;
        __builtin_memcpy(&power, &bits, 4);
        return x.lane[i] * power;
    });
}
inline float sum(Floats x) {
    return ((x.lane[0] + x.lane[4]) + (x.lane[2] + x.lane[6])) + ((x.lane[1] + x.lane[5]) + (x.lane[3] + x.lane[7]));
}
inline float largest(Floats x) {
    float top = x.lane[0];
    for (int i = 1; i < lanes; ++i) top = x.lane[i] > top ? x.lane[i] : top;
    return top;
}
inline float smallest(Floats x) {
    float low = x.lane[0];
    for (int i = 1; i < lanes; ++i) low = x.lane[i] < low ? x.lane[i] : low;
    return low;
}
// The nearest whole numbers, as bytes; x is within half a step of 0 to 255.
inline void store_bytes(uint8_t* to, Floats x) {
    x = rounded(x);
    for (int i = 0; i < lanes; ++i) to[i] = uint8_t(int32_t(x.lane[i]));
}
// 64 numbers, each times factor plus offset, as bytes.
inline void store_64_bytes(uint8_t* to, const float* from, Floats factor, Floats offset) {
    for (int i = 0; i < 64; i += lanes) store_bytes(to + i, fma(load(from + i), factor, offset));
}
// The lanes from `n` on replaced by `other`.
inline Floats first(int n, Floats x, Floats other) {
    return each([&](int i) { return i < n ? x.lane[i] : other.lane[i]; });
}

inline void transpose(const float* from, int64_t stride, float* to, int64_t to_stride) {
    for (int column = 0; column < 16; ++column)
        for (int row = 0; row < 16; ++row) to[column * to_stride + row] = from[row * stride + column];
}

constexpr int attention_rows = 4;
constexpr int attention_queries = 16;
constexpr int tile_rows = 4;
constexpr int columns_at_once = 16;

#if defined(__ARM_FEATURE_DOTPROD)
// NEON multiplies signed by signed bytes: the unsigned ones are lowered by 128, and 128 times the sum of
// the weights is given back, which is exact in int32.
template <int Rows, class Take>
void tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth, gemel::Ahead, Take take) {
    for (int column = 0; column < 64; column += columns_at_once) {
        int32x4_t sum[Rows][4], lift[4];
        int32_t found[Rows * columns_at_once];
        for (int c = 0; c < 4; ++c) {
            lift[c] = vdupq_n_s32(0);
            for (int r = 0; r < Rows; ++r) sum[r][c] = vdupq_n_s32(0);
        }
        const int8_t* weights = panel + column * 4;
        for (int k = 0; k < depth; k += 4, weights += 256) {
            int8x16_t w[4];
            for (int c = 0; c < 4; ++c) {
                w[c] = vld1q_s8(weights + c * 16);
                lift[c] = vdotq_s32(lift[c], vdupq_n_s8(1), w[c]);
            }
            for (int r = 0; r < Rows; ++r) {
                uint32_t four;
                __builtin_memcpy(&four, rows + r * stride + k, 4);
                const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
                for (int c = 0; c < 4; ++c) sum[r][c] = vdotq_s32(sum[r][c], x, w[c]);
            }
        }
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < 4; ++c)
                vst1q_s32(found + r * columns_at_once + c * 4, vmlaq_n_s32(sum[r][c], lift[c], 128));
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < columns_at_once; c += lanes) take(r, column + c, load(found + r * columns_at_once + c));
    }
}
#else
template <int Rows, class Take>
void tile(const uint8_t* rows, int64_t stride, const int8_t* panel, int depth, gemel::Ahead, Take take) {
    for (int column = 0; column < 64; column += columns_at_once) {
        int32_t sum[Rows][columns_at_once] = {};
        const int8_t* weights = panel + column * 4;
        for (int k = 0; k < depth; k += 4, weights += 256)
            for (int r = 0; r < Rows; ++r) {
                const uint8_t* x = rows + r * stride + k;
                for (int c = 0; c < columns_at_once; ++c)
                    for (int i = 0; i < 4; ++i) sum[r][c] += int32_t(x[i]) * int32_t(weights[c * 4 + i]);
            }
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < columns_at_once; c += lanes) take(r, column + c, load(sum[r] + c));
    }
}
#endif

template <int Rows, class Take>
void tile(const float* rows, int64_t stride, const float* panel, int depth, gemel::Ahead, Take take) {
    for (int column = 0; column < 64; column += columns_at_once) {
        float sum[Rows][columns_at_once] = {};
        const float* weights = panel + column;
        for (int k = 0; k < depth; ++k, weights += 64)
            for (int r = 0; r < Rows; ++r) {
                const float x = rows[r * stride + k];
                for (int c = 0; c < columns_at_once; ++c) sum[r][c] = fma(x, weights[c], sum[r][c]);
            }
        for (int r = 0; r < Rows; ++r)
            for (int c = 0; c < columns_at_once; c += lanes) take(r, column + c, load(sum[r] + c));
    }
}

// Rows are compared by the same products as they are multiplied.
constexpr gemel::Grain grain{127, 128, 0};

template <int Rows, class Take>
void coarse_tile(const uint8_t* rows, int64_t stride, const gemel::Panel& panel, gemel::Ahead ahead, Take take) {
    tile<Rows>(rows, stride, panel.bytes, panel.depth, ahead, take);
}

}  // namespace simd
}  // namespace
