// Which rows are most alike, exactly, at the cost of bytes.
//
// Every row is kept as bytes, with the length of what the bytes leave out. By the inequality of Cauchy and Schwarz
// that bounds how far a product of bytes may be from the product of the rows: what cannot reach the floor is sifted
// out, and the rest is scored again as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "axes.hpp"
#include "best_pairs.hpp"
#include "coarse.hpp"
#include "per_process.hpp"
#include "pool.hpp"

namespace gemel {

// The inner product of a row with itself.
struct Square {
    double value = 0.0;
    bool is_usual = true;  // float32 can hold the products of such rows
};

struct Search {
    const float* queries;
    int64_t n_queries;
    int k;
    const uint8_t* allowed;  // one for each row, or null: all
    int64_t itself;          // the row that the first query is, so that no row finds itself; or -1
    int64_t* ids;            // (n_queries, k), filled up with -1
    float* scores;           // (n_queries, k), filled up with -infinity
};

// Rows (n, dim) that stay where they are and must outlive this.
class PackedRows {
  public:
    PackedRows(const float* floats, int64_t n_rows, int dim, bool is_cosine, const Kernels&, int n_threads, int64_t most_bytes);
    ~PackedRows();

    int64_t size() const { return n_rows; }
    int dim() const { return n_columns; }
    bool is_packed_like(const PackedRows& other) const { return &kernels == &other.kernels; }
    // The first row whose squared length is not at most this, or -1.
    int64_t first_beyond(double square) const;
    // From now on most pairs are ruled out by what rows are along these axes, if both sides look along the same ones;
    // or along none. With rows that are too long or too short for that, all are compared as before.
    void look_along(std::shared_ptr<const Axes>);
    // Each pair left[first[i]], right[second[i]], scored exactly.
    void score(const PackedRows& right, const int64_t* first, const int64_t* second, int64_t n, float* scores) const;

    // The pairs of the rows from begin to end with the rows of `right`, or, if that is these rows themselves, with
    // those after them. `above` gives those that score at_least, by index, unless they are more than `most`.
    bool above(PackedRows& right, int64_t begin, int64_t end, float at_least, size_t most, std::vector<Pair>& found);
    void best(PackedRows& right, int64_t begin, int64_t end, BestPairs& best);
    void search(const Search&);

  private:
    struct Block;
    struct Asked;
    struct Candidates;
    struct Item;
    struct Locked;
    struct Projected;
    struct Turn;
    class Scan;

    Square square_of(const float* row) const;
    float score_of(double product, const Square& left, const Square& right) const;
    void score(Candidates&) const;
    double divisor_of(const Square&) const;
    int64_t bytes_of_a_row() const;
    Asked asked(const float* rows, const Square* squares, int64_t n);
    const Block& block(int64_t number);
    void pack(int64_t number, Block& block);
    template <class Sink>
    void scan(const Asked&, int64_t first_row, PackedRows& right, bool is_half, Sink&);

    const float* const floats;
    const int64_t n_rows;
    const int n_columns, depth;
    const bool is_cosine;
    const Kernels& kernels;
    std::vector<Square> squares;
    std::shared_ptr<const Axes> axes;
    Pool pool;
    PerProcess<Turn> turns;
    const int64_t most_bytes;
    size_t n_kept_blocks;
    std::vector<std::unique_ptr<Block>> kept;
};

}  // namespace gemel
