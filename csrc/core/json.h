// The one JSON reader and writer: strict, since plans and questions come from anywhere. Integers are exact, doubles
// round-trip, duplicate names and depths above 16 are errors. NaN and infinities are the texts "nan", "inf", "-inf".
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api.h"

namespace baracuda {

// What is wrong with a document: where ("question.attributes.axis"), what came, and what is wanted.
struct BCU_API DocumentError : std::runtime_error {
  std::string where, got, want;
  DocumentError(std::string where, std::string got, std::string want);
  DocumentError(const DocumentError&) = default;
  ~DocumentError() override;
};

class Json {
 public:
  enum class Kind : uint8_t { Null, Bool, Int, Unsigned, Number, Text, List, Object };  // Unsigned: above int64 only
  using Member = std::pair<std::string, Json>;

  Json() : int_(0) {}
  Json(bool v) : kind_(Kind::Bool), int_(v) {}
  Json(int v) : Json(static_cast<int64_t>(v)) {}
  Json(int64_t v) : kind_(Kind::Int), int_(v) {}
  Json(uint64_t v) : kind_(v > uint64_t{INT64_MAX} ? Kind::Unsigned : Kind::Int), int_(static_cast<int64_t>(v)) {}
  Json(double v) : kind_(Kind::Number), number_(v) {}
  Json(const char* v) : Json(std::string(v)) {}
  Json(std::string_view v) : Json(std::string(v)) {}
  Json(std::string v) : kind_(Kind::Text), int_(0), text_(std::move(v)) {}
  static Json list() { return Json(Kind::List); }
  static Json object() { return Json(Kind::Object); }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  int64_t integer() const { return int_; }
  uint64_t whole() const { return static_cast<uint64_t>(int_); }
  double number() const { return number_; }
  const std::string& text() const { return text_; }
  const std::vector<Json>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }
  // The member, or null.
  BCU_API const Json* find(std::string_view name) const;

  Json& add(Json item) { return items_.emplace_back(std::move(item)); }
  Json& set(std::string name, Json value) { return members_.emplace_back(std::move(name), std::move(value)).second; }

  // The whole text, members in the order they were set. Text that is no UTF-8 is written with replacement characters.
  BCU_API std::string write() const;
  // For a message: at most 200 characters.
  BCU_API std::string shown() const;

 private:
  explicit Json(Kind kind) : kind_(kind), int_(0) {}
  Kind kind_ = Kind::Null;
  union {
    int64_t int_;
    double number_;
  };
  std::string text_;
  std::vector<Json> items_;
  std::vector<Member> members_;
};

// Throws DocumentError.
BCU_API Json read_json(std::string_view text);

// Reading a document's parts, each of its type, with errors that name the place. An object's members that nobody asked
// for are an error, too: `done` says so.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }
  BCU_API bool boolean() const;
  BCU_API int64_t integer(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  BCU_API uint64_t whole() const;
  BCU_API double number() const;  // ints, and the texts "nan", "inf" and "-inf", too
  BCU_API const std::string& text() const;
  // The position of the text among names.
  BCU_API int one_of(const char* const* names, int n) const;
  BCU_API std::vector<Reader> items(size_t most) const;
  // The member, which must be there; or null where it is not.
  BCU_API Reader at(const char* name) const;
  BCU_API bool has(const char* name) const;
  bool null() const { return json_.is(Json::Kind::Null); }
  // Whether there are no members but these.
  BCU_API void only(std::initializer_list<std::string_view> names) const;
  [[noreturn]] BCU_API void wrong(std::string want) const;

 private:
  const Json& json_;
  std::string where_;
};

}  // namespace baracuda
