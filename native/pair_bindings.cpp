// The pair search, as Python sees it.
#include "pair_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "arrays.hpp"
#include "engine.hpp"
#include "pairs.hpp"

namespace nb = nanobind;
using namespace gemel;

namespace {

constexpr size_t widest = 60'000;  // so that a sum of products of bytes stays within 32 bits

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> column(std::vector<T>& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    return {kept->data(), {kept->size()}, owner};
}

nb::tuple arrays(PairColumns& columns) {
    return nb::make_tuple(column(columns.first), column(columns.second), column(columns.score));
}

PairColumns columns_of(const std::vector<Pair>& pairs) {
    PairColumns columns(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) columns.put(i, pairs[i]);
    return columns;
}

nb::tuple sorted(BestPairs& self, int most_threads) {
    PairColumns columns = [&] {
        nb::gil_scoped_release released;
        return self.sorted(most_threads);
    }();
    return arrays(columns);
}

void check(const PackedRows& left, const PackedRows& right, int64_t begin, int64_t end) {
    if (left.dim() != right.dim()) throw std::invalid_argument("both sets of rows must have the same dimension");
    if (!left.is_packed_like(right)) throw std::invalid_argument("both sets of rows must be packed for the same instruction set");
    if (begin < 0 || end < begin || end > left.size()) throw std::invalid_argument("begin and end must be rows");
}

void make(PackedRows* self, const Array<float, 2>& rows, bool is_cosine, const std::string& instruction_set, int n_threads,
          int64_t most_bytes) {
    if (n_threads < 1 || n_threads > 4096) throw std::invalid_argument("n_threads must be positive");
    if (rows.shape(1) < 1 || rows.shape(1) > widest) throw std::invalid_argument("rows must have 1 to 60,000 columns");
    if (int64_t(rows.shape(0)) >= most_rows) throw std::invalid_argument("there are more rows than the pair search can number");
    const Kernels& kernels = kernels_named(instruction_set);
    nb::gil_scoped_release released;
    new (self) PackedRows(rows.data(), int64_t(rows.shape(0)), int(rows.shape(1)), is_cosine, kernels, n_threads, most_bytes);
}

std::shared_ptr<Axes> make_axes(const Array<float, 2>& directions) {
    const size_t n = directions.shape(0), dim = directions.shape(1);
    if (dim < 1 || dim > widest || n < 1 || n > dim) throw std::invalid_argument("axes must be 1 to as many as there are dimensions");
    nb::gil_scoped_release released;
    return std::make_shared<Axes>(directions.data(), int(n), int(dim));
}

void look_along(PackedRows& self, std::shared_ptr<Axes> axes) {
    if (axes && axes->dim() != self.dim()) throw std::invalid_argument("axes must have the rows' dimension");
    nb::gil_scoped_release released;
    self.look_along(std::move(axes));
}

nb::object above(PackedRows& self, PackedRows& right, int64_t begin, int64_t end, float at_least, size_t most) {
    check(self, right, begin, end);
    bool is_whole;
    PairColumns columns = [&] {
        nb::gil_scoped_release released;
        std::vector<Pair> found;
        is_whole = self.above(right, begin, end, at_least, most, found);
        return columns_of(found);
    }();
    return is_whole ? nb::object(arrays(columns)) : nb::none();
}

void best(PackedRows& self, PackedRows& right, int64_t begin, int64_t end, BestPairs& pairs) {
    check(self, right, begin, end);
    nb::gil_scoped_release released;
    self.best(right, begin, end, pairs);
}

void search(PackedRows& self, const Array<float, 2>& queries, const std::optional<Array<uint8_t, 1>>& allowed, int64_t itself,
            const Output<int64_t, 2>& ids, const Output<float, 2>& scores) {
    const size_t n = queries.shape(0), k = ids.shape(1);
    if (queries.shape(1) != size_t(self.dim())) throw std::invalid_argument("queries must have the rows' dimension");
    if (allowed && allowed->shape(0) != size_t(self.size())) throw std::invalid_argument("allowed must have an entry for each row");
    if (k < 1 || k > size_t(1) << 30 || ids.shape(0) != n || scores.shape(0) != n || scores.shape(1) != k)
        throw std::invalid_argument("ids and scores must be (queries, k)");
    const Search wanted{queries.data(), int64_t(n), int(k), allowed ? allowed->data() : nullptr, itself, ids.data(), scores.data()};
    nb::gil_scoped_release released;
    self.search(wanted);
}

void score(const PackedRows& self, const PackedRows& right, const Array<int64_t, 1>& first, const Array<int64_t, 1>& second,
           const Output<float, 1>& scores) {
    check(self, right, 0, 0);
    const size_t n = first.shape(0);
    if (second.shape(0) != n || scores.shape(0) != n) throw std::invalid_argument("first, second and scores must be as many");
    for (size_t i = 0; i < n; ++i)
        if (first.data()[i] < 0 || first.data()[i] >= self.size() || second.data()[i] < 0 || second.data()[i] >= right.size())
            throw std::invalid_argument("first and second must be rows");
    nb::gil_scoped_release released;
    self.score(right, first.data(), second.data(), int64_t(n), scores.data());
}

}  // namespace

void bind_pairs(nb::module_& m) {
    nb::class_<BestPairs>(m, "BestPairs", "The most similar pairs so far.")
        .def(
            "__init__",
            [](BestPairs* self, size_t limit, float at_least) {
                if (limit < 1 || limit >= most_pairs) throw std::invalid_argument("limit must be positive and below 2^31");
                new (self) BestPairs(limit, at_least);
            },
            nb::arg("limit"), nb::arg("at_least"))
        .def("sorted", &sorted, nb::arg("most_threads") = 2, "First, second and score, the best first.");

    nb::class_<Axes>(m, "Axes", "A few directions at right angles: rows (n, dim) of length one.")
        .def(nb::new_(&make_axes), nb::arg("directions").noconvert())
        .def("__len__", &Axes::size);

    nb::class_<PackedRows>(m, "PackedRows", "Vectors ready to be compared; they are used where they stand.")
        .def("__init__", &make, nb::arg("rows").noconvert(), nb::arg("is_cosine"), nb::arg("instruction_set"), nb::arg("n_threads"),
             nb::arg("most_bytes"), nb::keep_alive<1, 2>())
        .def("first_beyond", &PackedRows::first_beyond, nb::arg("square"), "The first row whose square is not at most this, or -1.")
        .def("look_along", &look_along, nb::arg("axes").none(),
             "Rule out most pairs by what rows are along these axes, where both sides have the same; None: do not.")
        .def("above", &above, nb::arg("right"), nb::arg("begin"), nb::arg("end"), nb::arg("at_least"), nb::arg("most"),
             "First, second and score of all pairs of some rows that score at least this; None if they are too many.")
        .def("best", &best, nb::arg("right"), nb::arg("begin"), nb::arg("end"), nb::arg("pairs"), "Add the best pairs of some rows.")
        .def("search", &search, nb::arg("queries").noconvert(), nb::arg("allowed").noconvert().none(), nb::arg("itself"),
             nb::arg("ids").noconvert(), nb::arg("scores").noconvert(), "The k most similar rows of each query.")
        .def("score", &score, nb::arg("right"), nb::arg("first").noconvert(), nb::arg("second").noconvert(),
             nb::arg("scores").noconvert(), "The exact scores of pairs.");
}
