#include "http/codec/outgoing.h"

namespace spate::http {

namespace {

bool is_tunnel(Method method, Status status) {
  return status == Status::switching_protocols || (method == Method::connect && is_success(status));
}

// True for responses with neither content nor a length.
bool is_bare(Method method, Status status) {
  return is_informational(status) || is_tunnel(method, status) || status == Status::no_content ||
         status == Status::not_modified;
}

void announce_length(Outgoing& outgoing, std::uint64_t length) {
  outgoing.announced = Announced::length;
  outgoing.length = length;
  outgoing.body = length == 0 ? BodyKind::none : BodyKind::sized;
}

void announce_chunks(Outgoing& outgoing) {
  outgoing.announced = Announced::chunked;
  outgoing.body = BodyKind::chunked;
}

// A recipient must not be sent a transfer coding that it does not support, such as chunked to
// HTTP/1.0.
void announce(Outgoing& outgoing, Version version, std::optional<std::uint64_t> size) {
  if (size) return announce_length(outgoing, *size);
  if (version != Version::http_1_0) return announce_chunks(outgoing);
  outgoing.body = BodyKind::until_end;
  outgoing.keeps_alive = false;
}

ConnectionOption option_for(const RequestSummary& request, const Outgoing& outgoing) {
  if (!outgoing.keeps_alive) return ConnectionOption::close;
  return request.version == Version::http_1_0 ? ConnectionOption::keep_alive
                                              : ConnectionOption::none;
}

}  // namespace

bool may_have_content(Method method, Status status) {
  return method != Method::head && !is_bare(method, status) && status != Status::reset_content;
}

Outgoing frame_outgoing(const RequestSummary& request, Status status,
                        std::optional<std::uint64_t> size) {
  Outgoing outgoing;
  if (status == Status::switching_protocols) {
    outgoing.connection = ConnectionOption::upgrade;
    return outgoing;
  }
  if (is_informational(status) || is_tunnel(request.method, status)) return outgoing;
  outgoing.keeps_alive = request.keeps_alive;
  if (status == Status::reset_content) size = 0;
  if (!is_bare(request.method, status)) announce(outgoing, request.version, size);
  if (!may_have_content(request.method, status)) outgoing.body = BodyKind::none;
  outgoing.connection = option_for(request, outgoing);
  return outgoing;
}

Outgoing frame_sent_request(Method method, Content content, std::uint64_t size,
                            ConnectionOption connection) {
  Outgoing outgoing;
  const bool wants_length =
      method == Method::post || method == Method::put || method == Method::patch;
  if (content == Content::unsized) announce_chunks(outgoing);
  if (content == Content::sized || (content == Content::none && wants_length))
    announce_length(outgoing, content == Content::none ? 0 : size);
  outgoing.connection = connection;
  outgoing.keeps_alive = connection != ConnectionOption::close;
  return outgoing;
}

}  // namespace spate::http
