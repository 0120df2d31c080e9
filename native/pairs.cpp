#include "pairs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gemel {
namespace {

constexpr int64_t block_rows = 8192;
constexpr int panels_at_once = 32;
constexpr int64_t chunk_bytes = 80 * 1024;  // of rows that pass a panel: they stay in the second-level cache, with their floats
constexpr int candidates_at_once = 256;
constexpr size_t most_places = 64 * candidates_at_once;
constexpr size_t pairs_before_merging = 4096;
constexpr float no_floor = -std::numeric_limits<float>::infinity();

int64_t groups_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Whether float32 can hold what is computed of a row along axes.
bool can_be_projected(const Square& own) { return own.is_usual || own.value == 0.0; }

float upwards(double x) { return float(x * (1.0 + 2e-7)); }

bool is_earlier(const Pair& a, const Pair& b) { return a.first != b.first ? a.first < b.first : a.second < b.second; }

}  // namespace

// Columns: rows packed in panels of 64, as they are and along the axes.
struct PackedRows::Block {
    int64_t first = 0;
    int n = 0;
    CoarsePanels whole, along;
    std::vector<float> beside;  // of each column the length beside the axes

    int n_panels() const { return int(groups_of(n, panel_width)); }
};

// Rows that are compared with columns.
struct PackedRows::Asked {
    const float* floats = nullptr;
    const Square* squares = nullptr;
    int64_t n = 0;
    CoarseRows whole, along;
    std::vector<float> beside;  // in steps of the row along the axes
    bool is_fit = true;         // for being projected
};

// Rows along the axes as bytes.
struct PackedRows::Projected {
    const PackedRows& owner;
    const Axes* axes;
    std::vector<float> room;
    std::vector<int8_t> bytes;
    const float* projected = nullptr;
    Coarse coarse;
    double beside = 0.0;

    explicit Projected(const PackedRows& owner) : owner(owner), axes(owner.axes.get()) {
        if (!axes) return;
        room.resize(axes->room(panel_width));
        bytes.resize(size_t(rounded_up(axes->size(), 4)));
    }
    void project(const float* rows, int n) { projected = axes->project(owner.kernels, rows, n, room.data()); }
    // One of the rows that were projected last.
    void take(int row, const Square& square, double divisor) {
        const float* own = projected + row * axes->stride();
        coarse = owner.kernels.sieve.coarsen(own, axes->size(), divisor, bytes.data());
        const double whole = divisor > 0.0 ? square.value / (divisor * divisor) : 0.0;
        const double along = divisor > 0.0 ? owner.kernels.sieve.long_dot(own, own, axes->size()) / (divisor * divisor) : 0.0;
        beside = axes->beside(whole, along);
        constexpr double least = 1e-12;  // of the length: in smaller steps what is beside would be too many to count
        if (double(coarse.step) > least * std::sqrt(whole)) return;
        std::fill(bytes.begin(), bytes.end(), int8_t(0));
        coarse = {0.0f, coarse.length, coarse.length};
    }
};

// Pairs of rows that may be near enough.
struct PackedRows::Candidates {
    RowPair rows[candidates_at_once];
    const Square *left[candidates_at_once], *right[candidates_at_once];
    float scores[candidates_at_once];
    int n = 0;

    void add(const RowPair& pair, const Square& left_square, const Square& right_square) {
        rows[n] = pair;
        left[n] = &left_square;
        right[n++] = &right_square;
    }
};

// Some rows and some panels of a block: what a thread does at a time.
struct PackedRows::Item {
    int64_t row, row_end;
    int panel, panel_end;
};

// Of those who compare, one at a time.
struct PackedRows::Turn {
    std::mutex lock;
    std::unique_ptr<Block> passing;  // one that is not kept
};

PackedRows::PackedRows(const float* floats, int64_t n_rows, int dim, bool is_cosine, const Kernels& kernels,
                       int n_threads, int64_t most_bytes)
    : floats(floats), n_rows(n_rows), n_columns(dim), depth(rounded_up(dim, 4)), is_cosine(is_cosine), kernels(kernels),
      squares(size_t(n_rows)), pool(n_threads), most_bytes(most_bytes), kept(size_t(groups_of(n_rows, block_rows))) {
    n_kept_blocks = size_t(most_bytes / (block_rows * bytes_of_a_row()));
    std::atomic<int64_t> next{0};
    pool.run([&](int) {
        for (int64_t begin; (begin = next.fetch_add(block_rows)) < n_rows;)
            for (int64_t row = begin; row < std::min(begin + block_rows, n_rows); ++row)
                squares[size_t(row)] = square_of(floats + row * dim);
    });
}

PackedRows::~PackedRows() = default;

void PackedRows::look_along(std::shared_ptr<const Axes> chosen) {
    Turn& turn = turns.mine();
    const std::lock_guard<std::mutex> guard(turn.lock);
    if (chosen && !std::all_of(squares.begin(), squares.end(), can_be_projected)) chosen = nullptr;
    if (chosen == axes) return;
    axes = std::move(chosen);
    for (std::unique_ptr<Block>& block : kept) block = nullptr;
    turn.passing = nullptr;
    n_kept_blocks = size_t(most_bytes / (block_rows * bytes_of_a_row()));
}

int64_t PackedRows::bytes_of_a_row() const {
    const Grain& grain = kernels.sieve.grain;
    int64_t bytes = 0;
    for (const int own : {depth, axes ? rounded_up(axes->size(), 4) : 0})
        bytes += own + (grain.group ? groups_of(own, grain.group) * 2 * int64_t(sizeof(int16_t)) : 0);
    return bytes;
}

int64_t PackedRows::first_beyond(double square) const {
    const auto beyond = std::find_if(squares.begin(), squares.end(), [=](const Square& own) { return !(own.value <= square); });
    return beyond == squares.end() ? -1 : beyond - squares.begin();
}

Square PackedRows::square_of(const float* row) const {
    const double square = kernels.sieve.long_dot(row, row, n_columns);
    if (!(square > 1e-24 && square < 1e24)) return {square, false};
    return {double(kernels.sieve.short_dot(row, row, n_columns)), true};
}

// A product with itself, divided by the root of its own square, is exactly 1: equal rows have cosine 1.
float PackedRows::score_of(double product, const Square& left, const Square& right) const {
    if (!is_cosine) return float(product);
    const double lengths = std::sqrt(left.value * right.value);
    return lengths > 0.0 ? float(std::clamp(product / lengths, -1.0, 1.0)) : 0.0f;
}

void PackedRows::score(Candidates& some) const {
    kernels.sieve.short_dots(some.rows, some.n, n_columns, some.scores);
    for (int i = 0; i < some.n; ++i) {
        const Square &left = *some.left[i], &right = *some.right[i];
        const bool is_usual = left.is_usual && right.is_usual;
        const double product = is_usual ? double(some.scores[i]) : kernels.sieve.long_dot(some.rows[i].left, some.rows[i].right, n_columns);
        some.scores[i] = score_of(product, left, right);
    }
}

void PackedRows::score(const PackedRows& right, const int64_t* first, const int64_t* second, int64_t n,
                       float* scores) const {
    for (int64_t begin = 0; begin < n; begin += candidates_at_once) {
        Candidates some;
        for (int64_t i = begin; i < std::min(begin + candidates_at_once, n); ++i)
            some.add({floats + first[i] * n_columns, right.floats + second[i] * n_columns}, squares[size_t(first[i])],
                     right.squares[size_t(second[i])]);
        score(some);
        std::copy_n(some.scores, some.n, scores + begin);
    }
}

double PackedRows::divisor_of(const Square& square) const { return is_cosine ? std::sqrt(square.value) : 1.0; }

void PackedRows::pack(int64_t number, Block& block) {
    block.first = number * block_rows;
    block.n = int(std::min(block_rows, n_rows - block.first));
    const int n_panels = block.n_panels();
    block.whole.reset(n_panels, depth, kernels.sieve.grain);
    if (axes) {
        block.along.reset(n_panels, rounded_up(axes->size(), 4), kernels.sieve.grain);
        block.beside.assign(size_t(n_panels) * panel_width, 0.0f);
    }
    std::atomic<int> next{0};
    pool.run([&](int) {
        std::vector<int8_t> row(static_cast<size_t>(depth));
        Projected projected(*this);
        for (int panel; (panel = next.fetch_add(1)) < n_panels;) {
            const int64_t first = block.first + panel * panel_width;
            const int n = std::min<int>(panel_width, block.n - panel * panel_width);
            if (axes) projected.project(floats + first * n_columns, n);
            for (int c = 0; c < n; ++c) {
                const Square& square = squares[size_t(first + c)];
                const double divisor = divisor_of(square);
                const Coarse coarse = kernels.sieve.coarsen(floats + (first + c) * n_columns, n_columns, divisor, row.data());
                block.whole.put(panel, c, row.data(), coarse);
                if (!axes) continue;
                projected.take(c, square, divisor);
                block.along.put(panel, c, projected.bytes.data(), projected.coarse);
                block.beside[size_t(panel * panel_width + c)] = upwards(projected.beside);
            }
        }
    });
}

const PackedRows::Block& PackedRows::block(int64_t number) {
    std::unique_ptr<Block>& own = kept[size_t(number)];
    if (own) return *own;
    if (size_t(number) < n_kept_blocks) {
        auto made = std::make_unique<Block>();
        pack(number, *made);
        own = std::move(made);
        return *own;
    }
    std::unique_ptr<Block>& passing = turns.mine().passing;
    if (!passing) passing = std::make_unique<Block>();
    pack(number, *passing);
    return *passing;
}

PackedRows::Asked PackedRows::asked(const float* rows, const Square* row_squares, int64_t n) {
    Asked made;
    made.floats = rows;
    made.squares = row_squares;
    made.n = n;
    made.whole.reset(n, depth, kernels.sieve.grain);
    made.is_fit = std::all_of(row_squares, row_squares + n, can_be_projected);
    if (axes) {
        made.along.reset(n, rounded_up(axes->size(), 4), kernels.sieve.grain);
        made.beside.resize(size_t(n));
    }
    std::atomic<int64_t> next{0};
    pool.run([&](int) {
        std::vector<int8_t> bytes(static_cast<size_t>(depth));
        Projected projected(*this);
        for (int64_t begin; (begin = next.fetch_add(panel_width)) < n;) {
            const int64_t end = std::min(begin + panel_width, n);
            if (axes) projected.project(rows + begin * n_columns, int(end - begin));
            for (int64_t r = begin; r < end; ++r) {
                const double divisor = divisor_of(row_squares[r]);
                const Coarse coarse = kernels.sieve.coarsen(rows + r * n_columns, n_columns, divisor, bytes.data());
                made.whole.put(r, bytes.data(), coarse);
                if (!axes) continue;
                projected.take(int(r - begin), row_squares[r], divisor);
                // Of bytes that are all zero any step is right, but what is beside has to be counted in some.
                if (projected.coarse.step == 0.0f) projected.coarse.step = coarse.length > 0.0 ? float(coarse.length) : 1.0f;
                made.along.put(r, projected.bytes.data(), projected.coarse);
                made.beside[size_t(r)] = upwards(projected.beside * made.along.inverse[size_t(r)]);
            }
        }
    });
    return made;
}

namespace {

// The pairs above a floor, unless they are too many.
struct Above {
    const float at_least;
    const size_t most;
    const int64_t first_row;
    std::vector<std::vector<Pair>> found;  // of each member
    std::atomic<size_t> n_found{0};

    float floor(int64_t) const { return at_least; }
    bool is_over(int64_t) const { return n_found.load(std::memory_order_relaxed) > most; }
    void take(int member, int64_t row, int64_t second, float score) {
        found[size_t(member)].push_back({uint32_t(first_row + row), uint32_t(second), score});
    }
    void finish(int member, size_t before) { n_found += found[size_t(member)].size() - before; }
    size_t begin(int member) const { return found[size_t(member)].size(); }
    bool allows(int64_t, int64_t) const { return true; }
};

struct Best {
    BestPairs& best;
    const float ceiling;
    const int64_t first_row;
    std::vector<std::vector<Pair>> waiting;

    float floor(int64_t) const { return best.floor(); }
    bool is_over(int64_t row) const { return best.is_too_late(first_row + row); }
    void take(int member, int64_t row, int64_t second, float score) {
        waiting[size_t(member)].push_back({uint32_t(first_row + row), uint32_t(second), score});
        if (waiting[size_t(member)].size() >= pairs_before_merging) best.merge(waiting[size_t(member)], ceiling);
    }
    size_t begin(int) const { return 0; }
    void finish(int member, size_t) {
        if (!waiting[size_t(member)].empty()) best.merge(waiting[size_t(member)], ceiling);
    }
    bool allows(int64_t, int64_t) const { return true; }
};

// The k best of each row, as a heap with the worst on top. Threads that find something for the same row take turns.
struct Nearest {
    struct Hit {
        float score;
        int64_t id;
    };
    struct Row {
        std::atomic<float> floor{no_floor};
        std::atomic_flag is_taken = ATOMIC_FLAG_INIT;
        int n = 0;
    };
    const Search& wanted;
    const int64_t first_query;
    std::vector<Row> rows;
    std::vector<Hit> hits;  // (rows, k)

    Nearest(const Search& wanted, int64_t first_query, int64_t n)
        : wanted(wanted), first_query(first_query), rows(size_t(n)), hits(size_t(n) * size_t(wanted.k)) {}

    static bool is_better(const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }
    float floor(int64_t row) const { return rows[size_t(row)].floor.load(std::memory_order_relaxed); }
    bool is_over(int64_t) const { return false; }
    size_t begin(int) const { return 0; }
    void finish(int, size_t) {}
    bool allows(int64_t row, int64_t id) const {
        if (wanted.itself >= 0 && id == wanted.itself + first_query + row) return false;
        return !wanted.allowed || wanted.allowed[id];
    }
    void take(int, int64_t row, int64_t id, float score) {
        Row& own = rows[size_t(row)];
        while (own.is_taken.test_and_set(std::memory_order_acquire)) Team::yield();
        Hit* heap = hits.data() + row * wanted.k;
        const Hit hit{score, id};
        if (own.n < wanted.k) {
            heap[own.n++] = hit;
            std::push_heap(heap, heap + own.n, is_better);
        } else if (is_better(hit, heap[0])) {
            std::pop_heap(heap, heap + own.n, is_better);
            heap[own.n - 1] = hit;
            std::push_heap(heap, heap + own.n, is_better);
        }
        if (own.n == wanted.k) own.floor.store(heap[0].score, std::memory_order_relaxed);
        own.is_taken.clear(std::memory_order_release);
    }
    void settle() {
        for (size_t row = 0; row < rows.size(); ++row) {
            Hit* heap = hits.data() + row * size_t(wanted.k);
            std::sort(heap, heap + rows[row].n, is_better);
            int64_t* ids = wanted.ids + (first_query + int64_t(row)) * wanted.k;
            float* scores = wanted.scores + (first_query + int64_t(row)) * wanted.k;
            for (int i = 0; i < wanted.k; ++i) {
                ids[i] = i < rows[row].n ? heap[i].id : -1;
                scores[i] = i < rows[row].n ? heap[i].score : no_floor;
            }
        }
    }
};

}  // namespace

// One comparison of rows with one block, shared by threads.
class PackedRows::Scan {
  public:
    Scan(const PackedRows& owner, const Asked& asked, const PackedRows& right, const Block& block)
        : owner(owner), asked(asked), right(right), block(block) {}

    template <class Sink>
    void run(const Item& item, int64_t first_row, bool is_half, int member, Sink& sink) const {
        const int n = int(item.row_end - item.row), tile_rows = owner.kernels.tile_rows;
        std::vector<float> floors(static_cast<size_t>(n)), along_floors;
        std::vector<uint64_t> found(static_cast<size_t>(n));
        std::vector<uint8_t> is_open(size_t(groups_of(n, tile_rows)));
        std::vector<Place> places;
        bool looks_along = asked.is_fit && right.axes && right.axes == owner.axes;
        if (looks_along) along_floors = lowered_along(item, sink);
        const size_t before = sink.begin(member);
        for (int panel = item.panel; panel < item.panel_end; ++panel) {
            const int64_t column = block.first + int64_t(panel) * panel_width;
            const int n_columns = std::min<int>(panel_width, block.n - panel * panel_width);
            if (is_half && column + n_columns <= first_row + item.row + 1) continue;
            if (sink.is_over(item.row)) break;
            const int next = panel + 1 < item.panel_end ? panel + 1 : item.panel;
            const uint64_t present = n_columns == 64 ? ~uint64_t(0) : (uint64_t(1) << n_columns) - 1;
            const auto sift = [&](int from, int n_sifted) {
                for (int r = 0; r < n_sifted; ++r) floors[size_t(r)] = sink.floor(item.row + from + r);
                lower(item.row + from, n_sifted, panel, floors.data());
                owner.kernels.sieve.sift(asked.whole.rows(item.row + from, n_sifted), block.whole.panel(panel),
                                         block.whole.panel_bytes(next), floors.data(), found.data());
                for (int r = 0; r < n_sifted; ++r) {
                    const uint64_t bits = found[size_t(r)] & present;
                    const int64_t row = item.row + from + r;
                    if (bits) gather(row, column, is_half ? after(first_row + row, column, bits) : bits, sink, places);
                    if (places.size() >= most_places) take(places, member, sink);
                }
            };
            if (!looks_along) {
                sift(0, n);
                take(places, member, sink);
                continue;
            }
            const Beside beside{asked.beside.data() + item.row, block.beside.data() + panel * panel_width};
            owner.kernels.sieve.sift_tiles(asked.along.rows(item.row, n), block.along.panel(panel), beside,
                                           block.along.panel_bytes(next), along_floors.data(), is_open.data());
            int n_open = 0;
            for (int tile = 0; tile < int(is_open.size()); ++tile)
                if (is_open[size_t(tile)]) {
                    sift(tile * tile_rows, std::min(tile_rows, n - tile * tile_rows));
                    ++n_open;
                }
            take(places, member, sink);
            looks_along = 2 * n_open < int(is_open.size());  // else it costs more than it saves
        }
        sink.finish(member, before);
    }

  private:
    struct Place {
        int64_t row, second;
    };

    void lower(int64_t row, int n, int panel, float* floors) const {
        const ColumnBounds& columns = block.whole.bounds[size_t(panel)];
        const double more = (columns.longest + columns.rest) * score_rounding(asked.whole.depth);
        asked.whole.lower(row, n, columns, asked.whole.reach.data(), more, floors);
    }

    // The floors along the axes, for all panels of the item at once: floors only rise, so that these never are too high.
    template <class Sink>
    std::vector<float> lowered_along(const Item& item, const Sink& sink) const {
        constexpr double of_sum = 1e-6;  // of the two products, in float32
        const ColumnBounds whole = block.whole.bounds_of(item.panel, item.panel_end);
        const double more = (whole.longest + whole.rest) * (right.axes->missed() + score_rounding(asked.whole.depth) + of_sum);
        std::vector<float> floors(size_t(item.row_end - item.row));
        for (size_t r = 0; r < floors.size(); ++r) floors[r] = sink.floor(item.row + int64_t(r));
        asked.along.lower(item.row, int(floors.size()), block.along.bounds_of(item.panel, item.panel_end),
                          asked.whole.reach.data(), more, floors.data());
        return floors;
    }

    // The columns that come after this row.
    static uint64_t after(int64_t row, int64_t column, uint64_t bits) {
        const int64_t n_before = std::clamp<int64_t>(row + 1 - column, 0, 64);
        return n_before == 64 ? 0 : bits >> n_before << n_before;
    }

    template <class Sink>
    static void gather(int64_t row, int64_t column, uint64_t bits, const Sink& sink, std::vector<Place>& places) {
        for (; bits; bits &= bits - 1) {
            const int64_t second = column + __builtin_ctzll(bits);
            if (sink.allows(row, second)) places.push_back({row, second});
        }
    }

    template <class Sink>
    void take(std::vector<Place>& places, int member, Sink& sink) const {
        const int64_t dim = owner.n_columns;
        for (size_t begin = 0; begin < places.size(); begin += candidates_at_once) {
            const size_t end = std::min(begin + candidates_at_once, places.size());
            Candidates some;
            for (size_t i = begin; i < end; ++i) {
                const auto [row, second] = places[i];
                some.add({asked.floats + row * dim, right.floats + second * dim}, asked.squares[row], right.squares[size_t(second)]);
            }
            right.score(some);
            for (size_t i = begin; i < end; ++i) {
                const float score = some.scores[i - begin];
                if (score >= sink.floor(places[i].row)) sink.take(member, places[i].row, places[i].second, score);
            }
        }
        places.clear();
    }

    const PackedRows& owner;
    const Asked& asked;
    const PackedRows& right;
    const Block& block;
};

// Both sides of a comparison, or the one side that is compared with itself.
struct PackedRows::Locked {
    std::unique_lock<std::mutex> left, right;

    Locked(PackedRows& one, PackedRows& other)
        : left(one.turns.mine().lock, std::defer_lock), right(other.turns.mine().lock, std::defer_lock) {
        if (&one == &other) right.lock();
        else std::lock(left, right);
    }
};

template <class Sink>
void PackedRows::scan(const Asked& asked, int64_t first_row, PackedRows& right, bool is_half, Sink& sink) {
    const int64_t chunk = std::max<int64_t>(24, chunk_bytes / depth / 24 * 24);
    const int64_t n_chunks = groups_of(asked.n, chunk);
    const int64_t from = is_half ? first_row / block_rows : 0;
    for (int64_t number = from; number < int64_t(right.kept.size()); ++number) {
        const Block& block = right.block(number);
        const int n_ranges = int(groups_of(block.n_panels(), panels_at_once));
        std::atomic<int64_t> next{0};
        right.pool.run([&](int member) {
            const Scan scan(*this, asked, right, block);
            for (int64_t number; (number = next.fetch_add(1)) < n_chunks * n_ranges;) {
                const int64_t row = number / n_ranges * chunk;
                const int panel = int(number % n_ranges) * panels_at_once;
                const Item item{row, std::min(row + chunk, asked.n), panel, std::min(panel + panels_at_once, block.n_panels())};
                scan.run(item, first_row, is_half, member, sink);
            }
        });
    }
}

bool PackedRows::above(PackedRows& right, int64_t begin, int64_t end, float at_least, size_t most, std::vector<Pair>& found) {
    const Locked locked(*this, right);
    Above sink{at_least, most, begin, std::vector<std::vector<Pair>>(size_t(right.pool.size()))};
    scan(asked(floats + begin * n_columns, squares.data() + begin, end - begin), begin, right, &right == this, sink);
    if (sink.n_found > most) return false;
    for (const std::vector<Pair>& own : sink.found) found.insert(found.end(), own.begin(), own.end());
    std::sort(found.begin(), found.end(), is_earlier);
    return true;
}

void PackedRows::best(PackedRows& right, int64_t begin, int64_t end, BestPairs& best) {
    const Locked locked(*this, right);
    const float ceiling = is_cosine ? 1.0f : std::numeric_limits<float>::infinity();
    Best sink{best, ceiling, begin, std::vector<std::vector<Pair>>(size_t(right.pool.size()))};
    scan(asked(floats + begin * n_columns, squares.data() + begin, end - begin), begin, right, &right == this, sink);
}

void PackedRows::search(const Search& wanted) {
    const std::lock_guard<std::mutex> guard(turns.mine().lock);
    const int64_t at_once = std::clamp<int64_t>((int64_t(1) << 22) / wanted.k, 64, 16384);
    std::vector<Square> own(size_t(wanted.n_queries));
    for (int64_t q = 0; q < wanted.n_queries; ++q)
        own[size_t(q)] = square_of(wanted.queries + q * n_columns);
    for (int64_t begin = 0; begin < wanted.n_queries; begin += at_once) {
        const int64_t n = std::min(at_once, wanted.n_queries - begin);
        Nearest sink(wanted, begin, n);
        scan(asked(wanted.queries + begin * n_columns, own.data() + begin, n), begin, *this, false, sink);
        sink.settle();
    }
}

}  // namespace gemel
