// HPACK beside nghttp2's: both decode any block to the same fields or refuse it, and each decodes
// what the other encodes.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/codec/characters.h"
#include "http2/hpack_decoder.h"
#include "http2/hpack_encoder.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Decoded {
  bool is_valid = false;
  Fields fields;  // Also those before the error.
  bool operator==(const Decoded&) const = default;
};

class Other {
 public:
  Other() {
    check(nghttp2_hd_inflate_new(&inflater_) == 0 && nghttp2_hd_deflate_new(&deflater_, 4096) == 0);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    nghttp2_hd_inflate_del(inflater_);
    nghttp2_hd_deflate_del(deflater_);
  }

  Decoded decode(std::string_view block) {
    Decoded decoded;
    for (;;) {
      nghttp2_nv field;
      int flags = 0;
      const auto size = nghttp2_hd_inflate_hd2(inflater_, &field, &flags,
                                               reinterpret_cast<const std::uint8_t*>(block.data()),
                                               block.size(), 1);
      if (size < 0) return decoded;
      block.remove_prefix(static_cast<std::size_t>(size));
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
        decoded.fields.emplace_back(text(field.name, field.namelen),
                                    text(field.value, field.valuelen));
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) continue;
      nghttp2_hd_inflate_end_headers(inflater_);
      decoded.is_valid = true;
      return decoded;
    }
  }
  std::string encode(const Fields& fields) {
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : fields)
      list.push_back({bytes(name), bytes(value), name.size(), value.size(), 0});
    std::string block(nghttp2_hd_deflate_bound(deflater_, list.data(), list.size()), '\0');
    const auto size =
        nghttp2_hd_deflate_hd(deflater_, bytes(block), block.size(), list.data(), list.size());
    check(size >= 0);
    block.resize(static_cast<std::size_t>(size));
    return block;
  }
  void set_limit(std::size_t limit) {
    check(nghttp2_hd_deflate_change_table_size(deflater_, limit) == 0);
  }

 private:
  static std::string text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
  }
  static std::uint8_t* bytes(const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }

  nghttp2_hd_inflater* inflater_ = nullptr;
  nghttp2_hd_deflater* deflater_ = nullptr;
};

class Ours {
 public:
  // `cut` is the size of the first fragment.
  Decoded decode(std::string_view block, std::size_t cut) {
    Decoded decoded;
    decoder_.begin_block();
    std::string fragment(block.substr(0, cut));
    http::HpackStep step = take(fragment, decoded);
    if (step == http::HpackStep::invalid) return decoded;
    fragment += block.substr(std::min(cut, block.size()));
    step = take(fragment, decoded);
    decoded.is_valid = step == http::HpackStep::end;
    return decoded;
  }
  std::string encode(const Fields& fields) {
    std::vector<http::Http2Field> list;
    for (const auto& [name, value] : fields) list.push_back({name, value});
    Array<char> block;
    check(encoder_.encode(list, block));
    return {block.begin(), block.size()};
  }
  void set_limit(std::size_t limit) { encoder_.set_limit(limit); }

 private:
  http::HpackStep take(std::string& fragment, Decoded& decoded) {
    std::string_view rest = fragment;
    http::HpackField field;
    http::HpackStep step;
    while ((step = decoder_.next(rest, field)) == http::HpackStep::field)
      decoded.fields.emplace_back(field.name, field.value);
    fragment.erase(0, fragment.size() - rest.size());
    return step;
  }

  http::HpackDecoder decoder_;
  http::HpackEncoder encoder_;
};

void decode_by_both(Input& input) {
  Other other;
  Ours ours;
  while (!input.empty()) {
    const std::string_view block = input.text(200);
    const Decoded wanted = other.decode(block);
    check(ours.decode(block, input.below(block.size() + 1)) == wanted);
    if (!wanted.is_valid) return;
  }
}

Fields take_fields(Input& input) {
  static constexpr std::string_view kNames[] = {":status", ":path",  "date",   "server", "cookie",
                                                "x",       "x-long", "accept", "age",    "etag"};
  static constexpr std::string_view kValues[] = {"200", "/", "", "value", "1", "gzip, deflate"};
  Fields fields;
  for (std::size_t count = input.below(10); count > 0; --count) {
    std::string name(input.flag() ? kNames[input.below(std::size(kNames))] : input.text(20));
    std::string value(input.flag() ? kValues[input.below(std::size(kValues))] : input.text(20));
    if (input.below(8) == 0) value.append(input.below(3000), 'v');
    fields.emplace_back(std::move(name), std::move(value));
  }
  return fields;
}

// Our encoder sends names in lower case (RFC 9113 §8.2).
Fields with_lower_names(Fields fields) {
  for (auto& [name, value] : fields) std::ranges::transform(name, name.begin(), http::lower);
  return fields;
}

void encode_by_both(Input& input) {
  Other other;
  Ours ours;
  while (!input.empty()) {
    const Fields fields = take_fields(input);
    const Decoded wanted = {.is_valid = true, .fields = fields};
    const std::string theirs = other.encode(fields);
    check(ours.decode(theirs, input.below(theirs.size() + 1)) == wanted);
    check(other.decode(ours.encode(fields)) == Decoded{true, with_lower_names(fields)});
    if (input.below(4) != 0) continue;
    const std::size_t limit = input.below(5000);
    ours.set_limit(limit);
    other.set_limit(limit);
  }
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  fuzz::Input input(data, size);
  input.flag() ? fuzz::decode_by_both(input) : fuzz::encode_by_both(input);
  return 0;
}
