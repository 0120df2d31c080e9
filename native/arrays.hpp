// Arrays of Python that are used where they stand.
#pragma once

#include <nanobind/ndarray.h>

template <class T, size_t Dimensions>
using Array = nanobind::ndarray<const T, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;
template <class T, size_t Dimensions>
using Output = nanobind::ndarray<T, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;
