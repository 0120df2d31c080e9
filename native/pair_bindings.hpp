// The pair search, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

void bind_pairs(nanobind::module_&);
