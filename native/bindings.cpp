// The compiled module: a leaf below everything, it knows numbers and arrays only.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <optional>

#include "arrays.hpp"
#include "ceiling.hpp"
#include "cpu.hpp"
#include "engine.hpp"
#include "pair_bindings.hpp"
#include "wordpiece.hpp"

namespace nb = nanobind;
using namespace gemel;

namespace {

using FloatMatrix = Array<float, 2>;
using FloatVector = Array<float, 1>;

template <class Value>
Value choice(const std::map<std::string, Value>& known, const std::string& name, const char* what) {
    const auto found = known.find(name);
    if (found != known.end()) return found->second;
    throw std::invalid_argument("the engine knows no " + std::string(what) + " '" + name + "'");
}

int size(size_t n) {
    if (n > size_t(1) << 30) throw std::invalid_argument("an array is larger than the engine can take");
    return int(n);
}

const std::map<std::string, Activation> activations = {
    {"identity", Activation::identity}, {"gelu", Activation::gelu}, {"gelu_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},         {"silu", Activation::silu},
};
const std::map<std::string, TailActivation> tail_activations = {
    {"identity", TailActivation::identity}, {"tanh", TailActivation::tanh},
    {"relu", TailActivation::relu},         {"gelu", TailActivation::gelu},
    {"sigmoid", TailActivation::sigmoid},   {"silu", TailActivation::silu},
    {"elu", TailActivation::elu},           {"leaky_relu", TailActivation::leaky_relu},
    {"softplus", TailActivation::softplus}, {"mish", TailActivation::mish},
};
const std::map<std::string, PoolingMode> pooling_modes = {
    {"cls", PoolingMode::cls},
    {"max", PoolingMode::max},
    {"mean", PoolingMode::mean},
    {"mean_sqrt_len", PoolingMode::mean_sqrt_len},
    {"weightedmean", PoolingMode::weightedmean},
    {"lasttoken", PoolingMode::lasttoken},
};
const std::map<std::string, Result> results = {
    {"tokens", Result::tokens}, {"pooled", Result::pooled}, {"finished", Result::finished}};

Table table(const std::optional<FloatMatrix>& rows) {
    if (!rows) return {};
    return {rows->data(), size(rows->shape(0)), size(rows->shape(1))};
}

Matrix matrix(const FloatMatrix& weights, const std::optional<FloatVector>& bias) {
    if (bias && bias->shape(0) != weights.shape(0)) throw std::invalid_argument("a bias is not as long as its matrix");
    return {weights.data(), bias ? bias->data() : nullptr, size(weights.shape(0)), size(weights.shape(1))};
}

Norm norm(const FloatVector& gain, const FloatVector& shift) {
    const bool fits = gain.shape(0) == shift.shape(0);
    return {gain.data(), fits ? shift.data() : nullptr, size(gain.shape(0))};
}

template <class Wanted>
Wanted value(const nb::dict& settings, const char* name, bool converts = true) {
    if (!settings.contains(name)) throw std::invalid_argument("the setting '" + std::string(name) + "' is missing");
    try {
        return nb::cast<Wanted>(settings[name], converts);
    } catch (const nb::cast_error&) {
        throw std::invalid_argument("the setting '" + std::string(name) + "' has a value of the wrong kind");
    }
}

Settings settings_of(const nb::dict& given) {
    Settings settings;
    settings.hidden = value<int>(given, "hidden");
    settings.n_heads = value<int>(given, "n_heads");
    settings.head_dim = value<int>(given, "head_dim");
    settings.n_positions = value<int>(given, "n_positions");
    settings.first_position = value<int>(given, "first_position");
    settings.activation = choice(activations, value<std::string>(given, "activation"), "activation");
    settings.epsilon = value<float>(given, "epsilon");
    settings.is_int8 = value<bool>(given, "is_int8");
    settings.tokens_at_once = value<int>(given, "tokens_at_once");
    settings.n_down_groups = value<int>(given, "n_down_groups");
    return settings;
}

Pooling pooling_of(const std::vector<std::string>& modes, const std::vector<int>& skipped) {
    if (skipped.size() != 3) throw std::invalid_argument("three numbers of skipped tokens were expected");
    Pooling pooling;
    for (const std::string& mode : modes) pooling.modes.push_back(choice(pooling_modes, mode, "pooling mode"));
    pooling.n_prompt = skipped[0];
    pooling.n_first = skipped[1];
    pooling.n_last = skipped[2];
    return pooling;
}

// Names of a layer's tensors: {query_key_value, attention_output, up, down}.{weight, bias} and
// {after_attention, after_feed_forward}.{gain, shift}.
void add_layer(Engine& engine, const nb::dict& tensors) {
    const auto linear = [&](const char* name) {
        const std::string prefix(name);
        const auto weight = value<FloatMatrix>(tensors, (prefix + ".weight").c_str(), false);
        return std::make_pair(weight, value<FloatVector>(tensors, (prefix + ".bias").c_str(), false));
    };
    const auto pair = [&](const char* name) {
        const std::string prefix(name);
        const auto gain = value<FloatVector>(tensors, (prefix + ".gain").c_str(), false);
        return std::make_pair(gain, value<FloatVector>(tensors, (prefix + ".shift").c_str(), false));
    };
    const auto projections = linear("query_key_value"), output = linear("attention_output");
    const auto up = linear("up"), down = linear("down");
    const auto first = pair("after_attention"), second = pair("after_feed_forward");
    LayerWeights weights{matrix(projections.first, projections.second),
                         matrix(output.first, output.second),
                         matrix(up.first, up.second),
                         matrix(down.first, down.second),
                         norm(first.first, first.second),
                         norm(second.first, second.second)};
    nb::gil_scoped_release released;
    engine.add_layer(weights);
}

// Looks now and then whether somebody has pressed Ctrl-C: a window of texts may take minutes.
class Signals {
  public:
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - seen < std::chrono::milliseconds(100)) return true;
        seen = now;
        nb::gil_scoped_acquire held;
        return PyErr_CheckSignals() == 0;  // else what its handler has raised is set
    }

  private:
    std::chrono::steady_clock::time_point seen = std::chrono::steady_clock::now();
};

void encode(Engine& engine, const Array<int32_t, 1>& ids, const Array<int64_t, 1>& starts,
            const std::optional<Array<int32_t, 1>>& types, const std::vector<std::string>& modes,
            const std::vector<int>& skipped, const std::string& result, const Output<float, 2>& out) {
    if (starts.shape(0) < 1) throw std::invalid_argument("starts has no entries; one more than texts was expected");
    if (types && types->shape(0) != ids.shape(0)) throw std::invalid_argument("types are not as many as ids");
    const Pooling pooling = pooling_of(modes, skipped);
    const Result wanted = choice(results, result, "result");
    if (wanted != Result::tokens && modes.empty()) throw std::invalid_argument("no pooling mode is given");
    const Texts texts{ids.data(), types ? types->data() : nullptr, starts.data(), int64_t(starts.shape(0)) - 1,
                      int64_t(ids.shape(0))};
    const size_t n_rows = wanted == Result::tokens ? ids.shape(0) : starts.shape(0) - 1;
    if (out.shape(0) != n_rows) throw std::invalid_argument("the output has " + std::to_string(out.shape(0)) + " rows, expected " + std::to_string(n_rows));
    bool is_whole;
    {
        nb::gil_scoped_release released;
        is_whole = engine.encode(texts, pooling, wanted, out.data(), size(out.shape(1)), Signals());
    }
    if (!is_whole) throw nb::python_error();
}

void finish(Engine& engine, const FloatMatrix& pooled, const Output<float, 2>& out) {
    if (out.shape(0) != pooled.shape(0)) throw std::invalid_argument("as many rows as given were expected");
    nb::gil_scoped_release released;
    engine.finish(pooled.data(), int64_t(pooled.shape(0)), size(pooled.shape(1)), out.data(), size(out.shape(1)));
}

void int8_sums(const std::string& instruction_set, const Array<uint8_t, 2>& rows, const FloatMatrix& weights,
               const Output<int32_t, 2>& out) {
    Store store;
    const Linear linear = int8_linear(store, matrix(weights, std::nullopt), 1);
    if (rows.shape(1) != size_t(linear.depth) || out.shape(0) != rows.shape(0) || out.shape(1) != size_t(linear.width()))
        throw std::invalid_argument("rows of " + std::to_string(linear.depth) + " and sums of " + std::to_string(linear.width()) + " were expected");
    kernels_named(instruction_set).int8_sums(linear, rows.data(), size(rows.shape(0)), out.data());
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    return {kept->data(), {kept->size()}, owner};
}

// The bytes of Python's texts; those of one that is not Unicode are a byte that no text has, so that it is unread.
struct TextBytes {
    std::vector<std::string_view> views;
    std::vector<nb::object> kept;

    explicit TextBytes(const nb::list& texts) {
        views.reserve(nb::len(texts));
        for (nb::handle text : texts) {
            if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a list of str was expected");
            if (PyUnicode_IS_COMPACT_ASCII(text.ptr())) {
                const auto* bytes = static_cast<const char*>(PyUnicode_DATA(text.ptr()));
                views.emplace_back(bytes, size_t(PyUnicode_GET_LENGTH(text.ptr())));
                continue;
            }
            kept.push_back(nb::steal(PyUnicode_AsUTF8String(text.ptr())));
            if (!kept.back().is_valid()) {
                PyErr_Clear();
                views.emplace_back("\xff", 1);
            } else {
                views.emplace_back(PyBytes_AS_STRING(kept.back().ptr()), size_t(PyBytes_GET_SIZE(kept.back().ptr())));
            }
        }
    }
};

nb::tuple tokenise(const WordPiece& tokenizer, const nb::list& texts, const std::vector<int32_t>& prefix,
                   const std::vector<int32_t>& suffix, int room) {
    if (room < 1) throw std::invalid_argument("room must be positive");
    const TextBytes bytes(texts);
    TokenisedTexts out;
    {
        nb::gil_scoped_release released;
        out = tokenizer.encode(bytes.views, prefix, suffix, room);
    }
    return nb::make_tuple(array_of(std::move(out.ids)), array_of(std::move(out.starts)), array_of(std::move(out.too_long)),
                          array_of(std::move(out.unread)));
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The native core of gemel.";
    m.def(
        "cpu_features",
        [] {
            nb::dict features;
            for (const auto& [name, works] : probe_cpu()) features[name.c_str()] = works;
            return features;
        },
        "Every instruction set gemel may use, and whether it really executes on this machine.");
    m.def("usable_cores", &usable_cores, "Cores that this process may use: affinity and cgroup quota.");
    m.def("instruction_sets", &instruction_sets, "The engine's instruction sets that run here, the best last.");
    m.def(
        "tile_ceiling",
        [](const std::string& instruction_set, bool is_int8, int n_threads, double seconds) {
            if (n_threads < 1 || n_threads > 4096) throw std::invalid_argument("n_threads must be positive");
            const Kernels& kernels = kernels_named(instruction_set);
            nb::gil_scoped_release released;
            return tile_ceiling(kernels, is_int8, n_threads, seconds);
        },
        nb::arg("instruction_set"), nb::arg("is_int8"), nb::arg("n_threads"), nb::arg("seconds"),
        "Operations a second of the bare matrix-product tile, its operands in the nearest cache.");
    m.def("int8_sums", &int8_sums, nb::arg("instruction_set"), nb::arg("rows").noconvert(), nb::arg("weights").noconvert(), nb::arg("out").noconvert(),
          "Sums of products of bytes and quantised weights, for comparing instruction sets.");

    nb::class_<WordPiece>(m, "WordPiece", "BERT's tokenizer for plain English text; other texts are left unread.")
        .def(nb::init<const std::vector<std::string>&, int32_t, bool, const std::string&, int>(), nb::arg("vocabulary"),
             nb::arg("unknown"), nb::arg("lowercase"), nb::arg("stops"), nb::arg("most_letters"))
        .def("encode", &tokenise, nb::arg("texts"), nb::arg("prefix"), nb::arg("suffix"), nb::arg("room"),
             "Ids laid end to end, where each text starts, which were cut, and which are unread.");

    nb::class_<Engine>(m, "Engine", "A transformer's weights, ready to turn token ids into vectors.")
        .def(
            "__init__",
            [](Engine* self, const nb::dict& settings, const std::string& instruction_set, int n_threads) {
                if (n_threads < 1 || n_threads > 4096) throw std::invalid_argument("n_threads must be positive");
                new (self) Engine(settings_of(settings), kernels_named(instruction_set), n_threads);
            },
            nb::arg("settings"), nb::arg("instruction_set"), nb::arg("n_threads"))
        .def(
            "set_embeddings",
            [](Engine& self, const FloatMatrix& words, const std::optional<FloatMatrix>& positions,
               const std::optional<FloatMatrix>& types, const FloatVector& gain, const FloatVector& shift) {
                self.set_embeddings(table(words), table(positions), table(types), norm(gain, shift));
            },
            nb::arg("words").noconvert(), nb::arg("positions").noconvert().none(), nb::arg("types").noconvert().none(), nb::arg("gain").noconvert(), nb::arg("shift").noconvert(),
            nb::keep_alive<1, 2>(), "The tables; the word table is used where it stands.")
        .def(
            "set_projection",
            [](Engine& self, const FloatMatrix& weight, const std::optional<FloatVector>& bias) {
                self.set_projection(matrix(weight, bias));
            },
            nb::arg("weight").noconvert(), nb::arg("bias").noconvert().none())
        .def("set_distance_bias",
             [](Engine& self, const FloatMatrix& by_head) { self.set_distance_bias(table(by_head)); },
             nb::arg("by_head").noconvert())
        .def("add_layer", &add_layer, nb::arg("tensors"))
        .def(
            "add_dense",
            [](Engine& self, const FloatMatrix& weight, const std::optional<FloatVector>& bias,
               const std::string& activation, bool adds_input, const std::optional<FloatMatrix>& residual) {
                const Matrix added = residual ? matrix(*residual, std::nullopt) : Matrix{};
                self.add_dense(matrix(weight, bias), choice(tail_activations, activation, "activation"), adds_input,
                               residual ? &added : nullptr);
            },
            nb::arg("weight").noconvert(), nb::arg("bias").noconvert().none(), nb::arg("activation"), nb::arg("adds_input") = false,
            nb::arg("residual").noconvert().none() = nb::none())
        .def("add_normalisation", &Engine::add_normalisation)
        .def("encode", &encode, nb::arg("ids").noconvert(), nb::arg("starts").noconvert(), nb::arg("types").noconvert().none(), nb::arg("modes"),
             nb::arg("skipped"), nb::arg("result"), nb::arg("out").noconvert())
        .def("finish", &finish, nb::arg("pooled").noconvert(), nb::arg("out").noconvert())
        .def_prop_ro("n_bytes", &Engine::n_bytes)
        .def_prop_ro("n_threads", &Engine::n_threads)
        .def_prop_ro("instruction_set", &Engine::instruction_set);
    bind_pairs(m);
}
