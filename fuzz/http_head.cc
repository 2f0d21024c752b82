// Header sections of HTTP/1: vectors and tables agree; the result does not depend on how the bytes
// arrived; an accepted header section is written and parsed again as itself.
#include "http/codec/head.h"

#include <algorithm>
#include <string>

#include "http/codec/framing.h"
#include "http/codec/head_writer.h"
#include "http/codec/request_check.h"
#include "input.h"

namespace spate::fuzz {
namespace {

using namespace spate::http;

// One function of a kind of message.
template <class AnyHead>
using Parse = Parsed (*)(Bytes, std::size_t, const HeadLimits&, AnyHead&);

bool is_same(FieldsView a, FieldsView b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.at(i).name != b.at(i).name || a.at(i).value != b.at(i).value || a.at(i).id != b.at(i).id)
      return false;
  return true;
}

bool is_same(const RequestHead& a, const RequestHead& b) {
  return a.method == b.method && a.method_name == b.method_name && a.target == b.target &&
         a.version == b.version && a.repeated == b.repeated && is_same(a.fields, b.fields);
}
bool is_same(const ResponseHead& a, const ResponseHead& b) {
  return a.status == b.status && a.reason == b.reason && a.version == b.version &&
         a.repeated == b.repeated && is_same(a.fields, b.fields);
}

template <class AnyHead>
void check_same(const Parsed& a, const AnyHead& head_a, const Parsed& b, const AnyHead& head_b) {
  check(a.state == b.state && a.looked_at == b.looked_at);
  check(a.refusal.status == b.refusal.status && a.refusal.reason == b.refusal.reason);
  if (a.state == Parsed::State::whole) check(head_a.size == head_b.size && is_same(head_a, head_b));
}

// `step` bytes more each time.
template <class AnyHead>
Parsed parse_slowly(Parse<AnyHead> parse, Bytes bytes, std::size_t step, const HeadLimits& limits,
                    AnyHead& head) {
  Parsed parsed = parse(bytes.first(0), 0, limits, head);
  std::size_t there = 0;
  while (parsed.state == Parsed::State::unfinished && there < bytes.size()) {
    there = std::min(there + step, bytes.size());
    parsed = parse(bytes.first(there), parsed.looked_at, limits, head);
    if (parsed.state == Parsed::State::unfinished) check(parsed.looked_at <= there);
  }
  return parsed;
}

void write_first_line(HeadWriter& writer, const RequestHead& head) {
  writer.request_line(head.method_name, head.target);
}
void write_first_line(HeadWriter& writer, const ResponseHead& head) {
  writer.status_line(head.status);
}

// Through Fields, as a program would. The version and the reason are the writer's own.
template <class AnyHead>
void check_round_trip(Parse<AnyHead> parse, const AnyHead& head) {
  Fields fields;
  check(fields.add_all(head.fields));
  for (int id = 1; id < kFieldIds; ++id)
    if ((kFramingFields & bit_of(static_cast<FieldId>(id))) != 0)
      fields.remove(static_cast<FieldId>(id));
  char room[80 * 1024];
  HeadWriter writer(room);
  write_first_line(writer, head);
  writer.fields(fields);
  writer.end();
  check(writer.is_whole());
  AnyHead again;
  const HeadLimits limits = {.head = 65535, .line = 65535};
  check(parse(bytes_of(writer.text()), 0, limits, again).state == Parsed::State::whole);
  check(again.size == writer.size() && is_same(again.fields, fields));
}

void check_meaning(const RequestHead& head) {
  Framing framing;
  RequestTarget target;
  if (!frame_request(head, framing) && framing.body == BodyKind::sized) check(framing.size > 0);
  if (!check_request(head, target))
    check(head.fields.contains(FieldId::host) || head.version == Version::http_1_0);
}
void check_meaning(const ResponseHead& head) {
  Framing framing;
  for (const Method method : {Method::get, Method::head, Method::connect})
    if (!frame_response(head, method, framing) && framing.body == BodyKind::until_end)
      check(!framing.keeps_alive);
}

template <class AnyHead>
void try_out(Parse<AnyHead> parse, Parse<AnyHead> by_table, Bytes bytes, std::size_t step,
             const HeadLimits& limits) {
  AnyHead whole;
  AnyHead other;
  const Parsed parsed = parse(bytes, 0, limits, whole);
  check_same(parsed, whole, by_table(bytes, 0, limits, other), other);
  check_same(parsed, whole, parse_slowly(parse, bytes, step, limits, other), other);
  check_same(parsed, whole, parse_slowly(by_table, bytes, 1, limits, other), other);
  if (parsed.state != Parsed::State::whole) return;
  check(whole.size <= bytes.size());
  check_same(parsed, whole, parse(bytes.first(whole.size), 0, limits, other), other);
  check_round_trip(parse, whole);
  check_meaning(whole);
}

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spate;
  using namespace spate::fuzz;
  Input input(data, size);
  const std::size_t step = 1 + input.below(64);
  http::HeadLimits limits;
  const std::uint8_t what = input.byte();
  if ((what & 2) != 0)
    limits = {.head = input.byte() * 4u, .line = input.byte(), .fields = input.byte() % 8u};
  if ((what & 1) == 0)
    try_out(http::parse_request, http::parse_request_by_table, bytes_of(input.rest()), step,
            limits);
  else
    try_out(http::parse_response, http::parse_response_by_table, bytes_of(input.rest()), step,
            limits);
  return 0;
}
