// The compiled module: a leaf below everything, it knows numbers and arrays only.
#include <nanobind/nanobind.h>

#include "cpu.hpp"

namespace nb = nanobind;

NB_MODULE(_native, m) {
    m.doc() = "The native core of gemel.";
    m.def(
        "cpu_features",
        [] {
            nb::dict features;
            for (const auto& [name, works] : gemel::probe_cpu()) features[name.c_str()] = works;
            return features;
        },
        "Every instruction set gemel may use, and whether it really executes on this machine.");
}
