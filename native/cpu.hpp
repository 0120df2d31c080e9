// What this processor can really execute.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gemel {

// Every instruction set gemel may use, in ascending order, and whether it works here.
// A set counts as working only when the processor advertises it, the operating system keeps its
// registers, and one of its instructions ran: some machines advertise AMX and trap on it.
std::vector<std::pair<std::string, bool>> probe_cpu();

// Whether AVX-VNNI runs here, advertised or not: virtual machines hide it on processors that have it.
bool executes_avx_vnni();

}  // namespace gemel
