#include "wordpiece.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace gemel {
namespace {

constexpr int32_t word_root = 0, suffix_root = 1;  // "dog" grows from the one, "##dog" from the other

uint32_t key_of(int32_t node, uint8_t byte) { return (uint32_t(node) << 8 | byte) + 1; }
size_t slot_of(uint32_t key, size_t mask) { return size_t((key * 0x9E3779B1u) >> 7) & mask; }

// Bytes of the punctuation mark that starts here, U+2010 to U+2027, or 0.
size_t typographic(std::string_view text, size_t at) {
    if (at + 2 >= text.size() || uint8_t(text[at]) != 0xE2 || uint8_t(text[at + 1]) != 0x80) return 0;
    const uint8_t last = uint8_t(text[at + 2]);
    return last >= 0x90 && last <= 0xA7 ? 3 : 0;
}

// Whether the reader below can come upon a token: it leaves texts with other letters to another tokenizer.
bool is_readable(std::string_view token) {
    const bool is_ascii = std::all_of(token.begin(), token.end(), [](char byte) { return uint8_t(byte) < 128; });
    return is_ascii || (token.size() == 3 && typographic(token, 0));
}

}  // namespace

WordPiece::WordPiece(const std::vector<std::string>& vocabulary, int32_t unknown, bool lowercase,
                     const std::string& stops, int most_letters)
    : edges(1 << 16), tokens(2, -1), unknown(unknown), most_letters(most_letters) {
    if (vocabulary.size() > size_t(1) << 22 || most_letters < 1) throw std::invalid_argument("no such vocabulary");
    for (int byte = 0; byte < 256; ++byte) {
        const bool is_ascii = byte < 128;
        kinds[byte] = !is_ascii                                                  ? Kind::other
                      : byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' ? Kind::space
                      : std::iscntrl(byte)                                       ? Kind::nothing  // cleaned away
                      : std::ispunct(byte)                                       ? Kind::punctuation
                                                                                 : Kind::letter;
        lowered[byte] = uint8_t(lowercase && is_ascii ? std::tolower(byte) : byte);
    }
    for (const char stop : stops) kinds[uint8_t(stop)] = Kind::other;
    for (size_t id = 0; id < vocabulary.size(); ++id) {
        const std::string_view token = vocabulary[id];
        if (token.empty() || token.size() > 400 || !is_readable(token)) continue;
        add(token, int32_t(id), word_root);
        if (token.size() > 2 && token.substr(0, 2) == "##") add(token.substr(2), int32_t(id), suffix_root);
    }
}

void WordPiece::add(std::string_view token, int32_t id, int32_t root) {
    int32_t node = root;
    for (const char byte : token) node = grown(node, uint8_t(byte));
    tokens[size_t(node)] = id;
}

int32_t WordPiece::child(int32_t node, uint8_t byte) const {
    const uint32_t key = key_of(node, byte);
    const size_t mask = edges.size() - 1;
    for (size_t slot = slot_of(key, mask);; slot = (slot + 1) & mask) {
        if (edges[slot].key == key) return edges[slot].node;
        if (edges[slot].key == 0) return -1;
    }
}

int32_t WordPiece::grown(int32_t node, uint8_t byte) {
    const int32_t found = child(node, byte);
    if (found >= 0) return found;
    if (tokens.size() >= size_t(1) << 23) throw std::invalid_argument("the vocabulary is larger than any that is known");
    if (2 * ++n_edges > edges.size()) grow_table();
    const uint32_t key = key_of(node, byte);
    const size_t mask = edges.size() - 1;
    size_t slot = slot_of(key, mask);
    while (edges[slot].key) slot = (slot + 1) & mask;
    edges[slot] = {key, int32_t(tokens.size())};
    tokens.push_back(-1);
    return edges[slot].node;
}

void WordPiece::grow_table() {
    std::vector<Edge> larger(edges.size() * 2);
    const size_t mask = larger.size() - 1;
    for (const Edge& edge : edges) {
        if (!edge.key) continue;
        size_t slot = slot_of(edge.key, mask);
        while (larger[slot].key) slot = (slot + 1) & mask;
        larger[slot] = edge;
    }
    edges.swap(larger);
}

// Greedily the longest piece of the vocabulary, again and again; a word that cannot be made of pieces is unknown.
void WordPiece::split(std::string_view word, int n_letters, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    size_t start = n_letters > most_letters ? word.size() + 1 : 0;
    while (start < word.size()) {
        int32_t node = start ? suffix_root : word_root, longest = -1;
        size_t end = start;
        for (size_t at = start; at < word.size(); ++at) {
            node = child(node, uint8_t(word[at]));
            if (node < 0) break;
            if (tokens[size_t(node)] >= 0) longest = tokens[size_t(node)], end = at + 1;
        }
        if (longest < 0) break;
        ids.push_back(longest);
        start = end;
    }
    if (start == word.size()) return;
    ids.resize(before);
    ids.push_back(unknown);
}

// The ids of a text, at least one more than `most` if there are more; false where the text is not plain.
bool WordPiece::read(std::string_view text, size_t most, std::vector<int32_t>& ids) const {
    const size_t before = ids.size();
    std::string word;
    const auto finish = [&] {
        if (!word.empty()) split(word, int(word.size()), ids);
        word.clear();
    };
    bool is_plain = true, has_enough = false;
    for (size_t at = 0; at < text.size(); ++at) {
        const uint8_t byte = uint8_t(text[at]);
        size_t n_bytes = 1;
        switch (kinds[byte]) {
            case Kind::letter: word.push_back(char(lowered[byte])); continue;
            case Kind::nothing: continue;
            case Kind::space: finish(); break;
            case Kind::other:
                n_bytes = typographic(text, at);
                if (!n_bytes) is_plain = false;
                [[fallthrough]];
            case Kind::punctuation:
                if (!is_plain) break;
                finish();
                if (!has_enough) split(text.substr(at, n_bytes), 1, ids);
                at += n_bytes - 1;
        }
        if (!is_plain) return false;
        has_enough = ids.size() - before > most;
        if (has_enough) break;
    }
    finish();
    return true;
}

TokenisedTexts WordPiece::encode(const std::vector<std::string_view>& texts, const std::vector<int32_t>& prefix,
                                 const std::vector<int32_t>& suffix, int room) const {
    TokenisedTexts out;
    out.starts.reserve(texts.size() + 1);
    out.starts.push_back(0);
    for (size_t t = 0; t < texts.size(); ++t) {
        const size_t before = out.ids.size();
        out.ids.insert(out.ids.end(), prefix.begin(), prefix.end());
        const size_t first = out.ids.size();
        if (read(texts[t], size_t(room), out.ids)) {
            if (out.ids.size() - first > size_t(room)) {
                out.ids.resize(first + size_t(room));
                out.too_long.push_back(int64_t(t));
            }
            out.ids.insert(out.ids.end(), suffix.begin(), suffix.end());
        } else {
            out.ids.resize(before);
            out.unread.push_back(int64_t(t));
        }
        out.starts.push_back(int64_t(out.ids.size()));
    }
    return out;
}

}  // namespace gemel
