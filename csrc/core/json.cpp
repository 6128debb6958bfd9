#include "core/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace baracuda {
namespace {

constexpr int kMostDepth = 16;
constexpr size_t kMostBytes = size_t{64} << 20;

// Bytes of the UTF-8 character that starts at p, or 0 where there is none.
size_t utf8_length(const unsigned char* p, const unsigned char* end) {
  auto follows = [&](int i) { return p + i < end && (p[i] & 0xC0) == 0x80; };
  if (p[0] < 0x80) return 1;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) return follows(1) ? 2 : 0;
  if ((p[0] & 0xF0) == 0xE0) {
    if (!follows(1) || !follows(2)) return 0;
    const bool overlong = p[0] == 0xE0 && p[1] < 0xA0, surrogate = p[0] == 0xED && p[1] >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    const bool outside = (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] >= 0x90);
    return outside ? 0 : 4;
  }
  return 0;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

void write_text(std::string& out, const std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  out += '"';
  while (p < end) {
    const size_t n = utf8_length(p, end);
    if (n == 0) {
      append_utf8(out, 0xFFFD);
      ++p;
    } else if (n > 1) {
      out.append(reinterpret_cast<const char*>(p), n);
      p += n;
    } else {
      const unsigned char c = *p++;
      if (c == '"' || c == '\\')
        (out += '\\') += static_cast<char>(c);
      else if (c < 0x20)
        ((out += "\\u00") += kHex[c >> 4]) += kHex[c & 15];
      else
        out += static_cast<char>(c);
    }
  }
  out += '"';
}

void write_number(std::string& out, double v) {
  if (!std::isfinite(v)) {
    out += std::isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  char text[32];
  const std::string_view shortest(text, static_cast<size_t>(std::to_chars(text, text + sizeof text, v).ptr - text));
  out += shortest;
  if (shortest.find_first_of(".e") == shortest.npos) out += ".0";  // so that it is read as a double again
}

struct Writer {
  std::string out;

  void write(const Json& j) {
    switch (j.kind()) {
      case Json::Kind::Null:
        out += "null";
        return;
      case Json::Kind::Bool:
        out += j.integer() ? "true" : "false";
        return;
      case Json::Kind::Int:
        out += std::to_string(j.integer());
        return;
      case Json::Kind::Unsigned:
        out += std::to_string(j.whole());
        return;
      case Json::Kind::Number:
        return write_number(out, j.number());
      case Json::Kind::Text:
        return write_text(out, j.text());
      case Json::Kind::List:
        return items(j.items(), '[', ']', [this](const Json& item) { write(item); });
      case Json::Kind::Object:
        return items(j.members(), '{', '}', [this](const Json::Member& m) {
          write_text(out, m.first);
          out += ": ";
          write(m.second);
        });
    }
  }
  template <class List, class F>
  void items(const List& list, char open, char close, F each) {
    out += open;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out += ", ";
      each(list[i]);
    }
    out += close;
  }
};

struct Parser {
  const char* begin;
  const char* p;
  const char* end;

  [[noreturn]] void fail(const std::string& want) const {
    const std::string at = "byte " + std::to_string(p - begin);
    throw DocumentError("JSON", p == end ? "the end at " + at : at, want);
  }
  void space() {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) ++p;
  }
  bool take(char c) {
    space();
    if (p == end || *p != c) return false;
    ++p;
    return true;
  }
  void word(std::string_view text) {
    if (std::string_view(p, static_cast<size_t>(end - p)).substr(0, text.size()) != text) fail("a value");
    p += text.size();
  }

  Json value(int depth) {
    space();
    if (p == end) fail("a value");
    switch (*p) {
      case '{':
        return object(depth);
      case '[':
        return list(depth);
      case '"':
        return text();
      case 't':
        return word("true"), Json(true);
      case 'f':
        return word("false"), Json(false);
      case 'n':
        return word("null"), Json();
      default:
        return number();
    }
  }

  Json list(int depth) {
    if (depth >= kMostDepth) fail("at most " + std::to_string(kMostDepth) + " levels");
    Json out = Json::list();
    ++p;
    if (take(']')) return out;
    do out.add(value(depth + 1));
    while (take(','));
    if (!take(']')) fail("',' or ']'");
    return out;
  }

  Json object(int depth) {
    if (depth >= kMostDepth) fail("at most " + std::to_string(kMostDepth) + " levels");
    Json out = Json::object();
    ++p;
    if (take('}')) return out;
    do {
      space();
      if (p == end || *p != '"') fail("a name in quotes");
      std::string name = text();
      if (!take(':')) fail("':'");
      out.set(std::move(name), value(depth + 1));
    } while (take(','));
    if (!take('}')) fail("',' or '}'");
    unique(out);
    return out;
  }
  void unique(const Json& object) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : object.members()) names.push_back(name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) throw DocumentError("JSON", "the name '" + std::string(*twice) + "' twice", "it once");
  }

  uint32_t hex() {
    uint32_t out = 0;
    if (end - p < 4) fail("four hexadecimal digits");
    const auto [at, error] = std::from_chars(p, p + 4, out, 16);
    if (error != std::errc() || at != p + 4) fail("four hexadecimal digits");
    p += 4;
    return out;
  }
  void escape(std::string& out) {
    if (p == end) fail("an escape");
    const char c = *p++;
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const size_t at = kFrom.find(c); at != kFrom.npos) {
      out += kTo[at];
      return;
    }
    if (c != 'u') fail("an escape");
    uint32_t code = hex();
    if (code >= 0xD800 && code < 0xDC00) {
      if (end - p < 2 || p[0] != '\\' || p[1] != 'u') fail("the other half of a surrogate pair");
      p += 2;
      const uint32_t low = hex();
      if (low < 0xDC00 || low > 0xDFFF) fail("the other half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      fail("no half of a surrogate pair");
    }
    append_utf8(out, code);
  }
  std::string text() {
    std::string out;
    for (++p;;) {
      if (p == end) fail("the end of a text");
      const auto c = static_cast<unsigned char>(*p);
      if (c == '"') return ++p, out;
      if (c == '\\') {
        ++p;
        escape(out);
        continue;
      }
      const size_t n =
          utf8_length(reinterpret_cast<const unsigned char*>(p), reinterpret_cast<const unsigned char*>(end));
      if (c < 0x20 || n == 0) fail("text in UTF-8 without control characters");
      out.append(p, n);
      p += n;
    }
  }

  void digits() {
    if (p == end || *p < '0' || *p > '9') fail("a value");
    while (p < end && *p >= '0' && *p <= '9') ++p;
  }
  Json number() {
    const char* start = p;
    bool whole = true;
    if (*p == '-') ++p;
    if (p < end && *p == '0')
      ++p;
    else
      digits();
    if (p < end && *p == '.') {
      whole = false;
      ++p;
      digits();
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
      whole = false;
      ++p;
      if (p < end && (*p == '+' || *p == '-')) ++p;
      digits();
    }
    if (p < end && *p >= '0' && *p <= '9') fail("a number without leading zeros");
    return whole ? integer(start) : fraction(start);
  }
  Json integer(const char* start) {
    int64_t v = 0;
    uint64_t u = 0;
    if (std::from_chars(start, p, v).ec == std::errc()) return Json(v);
    if (*start != '-' && std::from_chars(start, p, u).ec == std::errc()) return Json(u);
    p = start;
    fail("an integer of 64 bits");
  }
  Json fraction(const char* start) {
    double v = 0;
    if (std::from_chars(start, p, v).ec == std::errc()) return Json(v);
    p = start;
    fail("a number that a double holds");
  }
};

}  // namespace

DocumentError::DocumentError(std::string where, std::string got, std::string want)
    : std::runtime_error(where + ": got " + got + ", want " + want + "."),
      where(std::move(where)),
      got(std::move(got)),
      want(std::move(want)) {}
DocumentError::~DocumentError() = default;

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : members_)
    if (key == name) return &value;
  return nullptr;
}

std::string Json::write() const {
  Writer writer;
  writer.write(*this);
  return std::move(writer.out);
}

std::string Json::shown() const {
  constexpr size_t kMost = 200;
  std::string text = write();
  return text.size() <= kMost ? text : text.substr(0, kMost) + " ...";
}

Json read_json(std::string_view text) {
  if (text.size() > kMostBytes) throw DocumentError("JSON", std::to_string(text.size()) + " bytes", "at most 64 MiB");
  Parser parser{text.data(), text.data(), text.data() + text.size()};
  Json out = parser.value(0);
  parser.space();
  if (parser.p != parser.end) parser.fail("the end");
  return out;
}

void Reader::wrong(std::string want) const { throw DocumentError(where_, json_.shown(), std::move(want)); }

bool Reader::boolean() const {
  if (!json_.is(Json::Kind::Bool)) wrong("true or false");
  return json_.integer() != 0;
}

int64_t Reader::integer(int64_t least, int64_t most) const {
  if (json_.is(Json::Kind::Int) && json_.integer() >= least && json_.integer() <= most) return json_.integer();
  const bool any = least == INT64_MIN && most == INT64_MAX;
  wrong(any ? "an integer" : "an integer, " + std::to_string(least) + " <= n <= " + std::to_string(most));
}

uint64_t Reader::whole() const {
  const bool fits = json_.is(Json::Kind::Unsigned) || (json_.is(Json::Kind::Int) && json_.integer() >= 0);
  if (!fits) wrong("an integer of at least 0");
  return json_.whole();
}

double Reader::number() const {
  if (json_.is(Json::Kind::Number)) return json_.number();
  if (json_.is(Json::Kind::Int)) return static_cast<double>(json_.integer());
  if (json_.is(Json::Kind::Unsigned)) return static_cast<double>(json_.whole());
  if (json_.is(Json::Kind::Text)) {
    if (json_.text() == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json_.text() == "inf") return std::numeric_limits<double>::infinity();
    if (json_.text() == "-inf") return -std::numeric_limits<double>::infinity();
  }
  wrong("a number");
}

const std::string& Reader::text() const {
  if (!json_.is(Json::Kind::Text)) wrong("a text");
  return json_.text();
}

int Reader::one_of(const char* const* names, int n) const {
  std::string all;
  for (int i = 0; i < n; ++i) {
    if (json_.is(Json::Kind::Text) && json_.text() == names[i]) return i;
    all += (i ? ", " : "one of ") + std::string(names[i]);
  }
  wrong(std::move(all));
}

std::vector<Reader> Reader::items(size_t most) const {
  if (!json_.is(Json::Kind::List) || json_.items().size() > most)
    wrong("a list of at most " + std::to_string(most) + " entries");
  std::vector<Reader> out;
  for (const Json& item : json_.items()) out.emplace_back(item, where_ + "[" + std::to_string(out.size()) + "]");
  return out;
}

Reader Reader::at(const char* name) const {
  if (!json_.is(Json::Kind::Object)) wrong("an object");
  const Json* found = json_.find(name);
  const std::string place = where_.empty() ? name : where_ + "." + name;
  if (!found) throw DocumentError(place, "nothing", "a value");
  return {*found, place};
}

bool Reader::has(const char* name) const {
  if (!json_.is(Json::Kind::Object)) wrong("an object");
  return json_.find(name) != nullptr;
}

void Reader::only(std::initializer_list<std::string_view> names) const {
  if (!json_.is(Json::Kind::Object)) wrong("an object");
  for (const auto& [name, value] : json_.members()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string all;
    for (const std::string_view known : names) (all += all.empty() ? "some of " : ", ") += known;
    throw DocumentError(where_.empty() ? "document" : where_, "the member '" + name.substr(0, 200) + "'", all);
  }
}

}  // namespace baracuda
