// Functions of vectors of floats, in terms of whichever simd header was included before.
#pragma once

namespace {  // each instruction set has functions of its own: a linker must never choose between them
namespace simd {

// Two to the x, for x up to 0 and beyond; below -126 it may be zero. Within 2e-7 of the true value.
inline Floats exp2(Floats x) {
    x = larger(x, all(-127.0f));
    const Floats whole = rounded(x), rest = x - whole;
    Floats p = all(1.540353e-4f);
    p = fma(p, rest, all(1.3333558e-3f));
    p = fma(p, rest, all(9.6181291e-3f));
    p = fma(p, rest, all(5.5504109e-2f));
    p = fma(p, rest, all(0.24022651f));
    p = fma(p, rest, all(0.69314718f));
    p = fma(p, rest, all(1.0f));
    return scaled(p, whole);
}

// GELU within 2.1e-4, far below a step of what int8 will make of it: the ramp less a bump that ends at 4.
inline Floats gelu_for_int8(Floats x) {
    const Floats t = magnitude(x, all(4.0f));
    Floats p = all(-6.37488052e-4f);
    p = fma(p, t, all(9.85084453e-3f));
    p = fma(p, t, all(-5.72019620e-2f));
    p = fma(p, t, all(1.39045898e-1f));
    p = fma(p, t, all(-4.16157778e-2f));
    p = fma(p, t, all(-3.91533589e-1f));
    p = fma(p, t, all(5.00637866e-1f));
    return less_product(larger(x, all(0.0f)), t, p);
}

// The error function to the last few bits: a quotient of polynomials, flat beyond 4.
inline Floats erf(Floats x) {
    x = smaller(larger(x, all(-4.0f)), all(4.0f));
    const Floats square = x * x;
    Floats above = all(-2.72614225801306e-10f);
    above = fma(above, square, all(2.77068142495902e-08f));
    above = fma(above, square, all(-2.10102402082508e-06f));
    above = fma(above, square, all(-5.69250639462346e-05f));
    above = fma(above, square, all(-7.34990630326855e-04f));
    above = fma(above, square, all(-2.95459980854025e-03f));
    above = fma(above, square, all(-1.60960333262415e-02f));
    Floats below = all(-1.45660718464996e-05f);
    below = fma(below, square, all(-2.13374055278905e-04f));
    below = fma(below, square, all(-1.68282697438203e-03f));
    below = fma(below, square, all(-7.37332916720468e-03f));
    below = fma(below, square, all(-1.42647390514189e-02f));
    return x * above / below;
}

inline Floats gelu(Floats x) {
    const Floats half = all(0.5f) * x;
    return fma(half, erf(x * all(0.70710678f)), half);
}

// x times the logistic function of y
inline Floats gated(Floats x, Floats y) { return x / (all(1.0f) + exp2(smaller(y * all(-1.44269504f), all(126.0f)))); }

inline Floats gelu_tanh(Floats x) {
    const Floats inner = all(1.59576912f) * fma(all(0.044715f) * x * x, x, x);
    return gated(x, inner);
}

}  // namespace simd
}  // namespace
