// Short rows moved in pieces of one size, without the library call that takes longer than the row.
#pragma once
#include <cstdint>
#include <utility>

namespace baracuda {

// A row as pieces of kPiece bytes, of which the last one may overlap the one before; kOne: it is one piece.
template <int kPiece, bool kOne>
inline void move_pieces(char* to, const char* from, int64_t bytes) {
  struct Piece {
    char bytes[kPiece];
  };
  const auto piece = [](auto* at) { return reinterpret_cast<Piece*>(const_cast<char*>(at)); };
  const int64_t last = bytes - kPiece;
  if constexpr (kOne) {
    *piece(to) = *piece(from);
  } else if constexpr (kPiece < 128) {
    const Piece begin = *piece(from), end = *piece(from + last);
    *piece(to) = begin, *piece(to + last) = end;
  } else {
    for (int64_t b = 0; b < last; b += kPiece) *piece(to + b) = *piece(from + b);
    *piece(to + last) = *piece(from + last);
  }
}
// Calls f.template operator()<kPiece, kOne>() with the largest piece that fits into rows of so many bytes.
template <class F, int kPiece = 128>
decltype(auto) with_pieces(int64_t bytes, F&& f) {
  if (bytes == kPiece) return f.template operator()<kPiece, true>();
  if constexpr (kPiece > 1) {
    if (bytes < kPiece) return with_pieces<F, kPiece / 2>(bytes, std::forward<F>(f));
  }
  return f.template operator()<kPiece, false>();
}

}  // namespace baracuda
