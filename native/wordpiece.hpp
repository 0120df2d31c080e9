// BERT's WordPiece for plain text: what most English sentences are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gemel {

struct TokenisedTexts {
    std::vector<int32_t> ids;       // of all texts, laid end to end, special ones included
    std::vector<int64_t> starts;    // one more than texts
    std::vector<int64_t> too_long;  // texts that were cut
    std::vector<int64_t> unread;    // texts that are not plain: they are left empty, for a full tokenizer
};

// Text in ASCII, and with the typographic dashes, quotes and dots of English. Whatever else a text holds
// (accents to be stripped, other scripts, special tokens written out) is not for this tokenizer.
class WordPiece {
  public:
    // The vocabulary by id. A text that holds one of `stops` (the first characters of special tokens) is unread.
    WordPiece(const std::vector<std::string>& vocabulary, int32_t unknown, bool lowercase, const std::string& stops,
              int most_letters);

    TokenisedTexts encode(const std::vector<std::string_view>& texts, const std::vector<int32_t>& prefix,
                          const std::vector<int32_t>& suffix, int room) const;

  private:
    enum class Kind : uint8_t { other, letter, space, punctuation, nothing };
    struct Edge {
        uint32_t key = 0;  // (node, byte) + 1; 0 where there is none
        int32_t node = -1;
    };

    void add(std::string_view token, int32_t id, int32_t root);
    int32_t child(int32_t node, uint8_t byte) const;
    int32_t grown(int32_t node, uint8_t byte);
    void grow_table();
    bool read(std::string_view text, size_t most, std::vector<int32_t>& ids) const;
    void split(std::string_view word, int n_letters, std::vector<int32_t>& ids) const;

    Kind kinds[256];
    uint8_t lowered[256];
    std::vector<Edge> edges;  // a hash table of the trie's edges
    size_t n_edges = 0;
    std::vector<int32_t> tokens;  // of each node, or -1
    int32_t unknown;
    int most_letters;
};

}  // namespace gemel
