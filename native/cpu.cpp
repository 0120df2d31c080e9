#include "cpu.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <mutex>
#endif

namespace gemel {

#if defined(__x86_64__)
namespace {

sigjmp_buf after_trap;

void on_trap(int) { siglongjmp(after_trap, 1); }

// The instructions are spelled as assembly so that any compiler flags build them,
// and so that nothing is optimised away. Clobbered registers are named where the compiler knows them.
void run_avx2() { asm volatile("vpaddb %%ymm0, %%ymm0, %%ymm0" ::: "xmm0"); }
void run_f16c() { asm volatile("vcvtph2ps %%xmm0, %%ymm0" ::: "xmm0"); }
void run_avx_vnni() { asm volatile("%{vex%} vpdpbusd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0"); }
void run_avx512() { asm volatile("vpaddb %%zmm0, %%zmm0, %%zmm0" ::: "xmm0"); }
void run_avx512_vnni() { asm volatile("vpdpbusd %%zmm0, %%zmm0, %%zmm0" ::: "xmm0"); }
// vaddph zmm0, zmm0, zmm0 and tilerelease, as bytes: older assemblers do not know their names.
void run_avx512_fp16() { asm volatile(".byte 0x62,0xf5,0x7c,0x48,0x58,0xc0" ::: "xmm0"); }
void run_amx() { asm volatile(".byte 0xc4,0xe2,0x78,0x49,0xc0"); }

bool runs(void (*instruction)()) {
    struct sigaction trap = {}, before = {};
    trap.sa_handler = on_trap;
    sigemptyset(&trap.sa_mask);
    if (sigaction(SIGILL, &trap, &before) != 0) return false;
    volatile bool ran = false;
    if (sigsetjmp(after_trap, 1) == 0) {
        instruction();
        ran = true;
    }
    sigaction(SIGILL, &before, nullptr);
    return ran;
}

std::mutex one_at_a_time;  // the trap handler and its jump buffer are shared
constexpr uint64_t ymm_state = 0x6, zmm_state = 0xe6, tile_state = 0x60000;

struct Advertised {
    uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf71_eax = 0;
    uint64_t kept_state = 0;  // XCR0: the register files that the operating system saves

    Advertised() {
        uint32_t a, b, c, d;
        if (__get_cpuid(1, &a, &b, &c, &d)) leaf1_ecx = c;
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) leaf7_ebx = b, leaf7_ecx = c, leaf7_edx = d;
        if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) leaf71_eax = a;
        if (leaf1_ecx & (1u << 27)) {  // OSXSAVE: xgetbv may be executed
            uint32_t low, high;
            asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
            kept_state = (uint64_t(high) << 32) | low;
        }
    }
    bool keeps(uint64_t state) const { return (kept_state & state) == state; }
};

}  // namespace

bool executes_avx_vnni() {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    const Advertised cpu;
    return cpu.keeps(ymm_state) && (cpu.leaf7_ebx & (1u << 5)) && runs(run_avx2) && runs(run_avx_vnni);
}

std::vector<std::pair<std::string, bool>> probe_cpu() {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    const Advertised cpu;
    const bool avx2 = cpu.keeps(ymm_state) && (cpu.leaf7_ebx & (1u << 5)) && runs(run_avx2);
    const bool f16c = avx2 && (cpu.leaf1_ecx & (1u << 29)) && runs(run_f16c);
    const bool avx_vnni = avx2 && (cpu.leaf71_eax & (1u << 4)) && runs(run_avx_vnni);
    // F, DQ, BW and VL together: the kernels are written for all four.
    constexpr uint32_t f_dq_bw_vl = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);
    const bool avx512 =
        cpu.keeps(zmm_state) && (cpu.leaf7_ebx & f_dq_bw_vl) == f_dq_bw_vl && runs(run_avx512);
    const bool avx512_vnni = avx512 && (cpu.leaf7_ecx & (1u << 11)) && runs(run_avx512_vnni);
    const bool avx512_fp16 = avx512 && (cpu.leaf7_edx & (1u << 23)) && runs(run_avx512_fp16);
    const bool amx_int8 = cpu.keeps(tile_state) && (cpu.leaf7_edx & (1u << 25)) && runs(run_amx);
    return {{"avx2", avx2},
            {"f16c", f16c},
            {"avx_vnni", avx_vnni},
            {"avx512", avx512},
            {"avx512_vnni", avx512_vnni},
            {"avx512_fp16", avx512_fp16},
            {"amx_int8", amx_int8}};
}

#elif defined(__aarch64__)

bool executes_avx_vnni() { return false; }

// NEON is part of the base architecture; the dot product is known from the compile target.
std::vector<std::pair<std::string, bool>> probe_cpu() {
#if defined(__ARM_FEATURE_DOTPROD)
    return {{"neon", true}, {"neon_dotprod", true}};
#else
    return {{"neon", true}, {"neon_dotprod", false}};
#endif
}

#else

bool executes_avx_vnni() { return false; }

std::vector<std::pair<std::string, bool>> probe_cpu() { return {}; }

#endif

}  // namespace gemel
