// CallState's answer: its head, its body, and where it redirects.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/client/call_state.h"
#include "http/client/client_core.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"

namespace spate::http {

namespace {

// Of the body of a redirect, so that the connection may be used again.
constexpr std::uint64_t kMostDiscarded = 64 * 1024;
// What is decompressed at a time.
constexpr std::size_t kPiece = 64 * 1024;
constexpr int kMostInformational = 32;

bool is_redirection(Status status) {
  return status == Status::moved_permanently || status == Status::found ||
         status == Status::see_other || status == Status::temporary_redirect ||
         status == Status::permanent_redirect;
}

std::error_code error_of_decoding(std::error_code error) {
  if (error == std::errc::message_size) return HttpError::body_too_long;
  return error == std::errc::not_enough_memory ? error : HttpError::bad_encoding;
}

}  // namespace

bool CallState::take_informational(const ResponseView& head) {
  if (head.status == Status::switching_protocols) return false;
  if (++informational_ > kMostInformational) return false;
  if (head.status == Status::continue_) {
    let_body_go();
  } else if (handler_ != nullptr) {
    handler_->on_informational(head.status, head.fields);
  }
  return true;
}

void CallState::take_head(const ResponseView& head, const Framing& how) {
  stop_waiting_for_continue();
  framing = how;
  body_left = how.size;
  has_body_ = how.body != BodyKind::none;
  chunks = {};
  trailers.clear();
  shown_ = 0;
  response_.emplace(Response(*url_));
  response_->status_ = head.status;
  response_->version_ = head.version;
  response_->reason_ = head.reason;
  if (!response_->fields_.add_all(head.fields)) failure_ = system_error(ENOMEM);
  core_->keep_cookies(*url_, head.fields);
  plan_redirect();
  if (failure_ || next_) return;
  plan_decoding();
  const bool is_told = !failure_ && head.status != Status::switching_protocols;
  if (is_told && handler_ != nullptr) handler_->on_response(*response_);
}

// ---- its body

void CallState::plan_decoding() {
  decompressor_.reset();
  if (!options_.decompress || framing.body == BodyKind::none) return;
  const FieldsView fields = response_->fields_;
  const auto coding = coding_of(fields[FieldId::content_encoding]);
  if (!coding || fields.count(FieldId::content_encoding) != 1) return;
  Result<Decompressor> made = Decompressor::make(*coding, most_);
  if (!made) return static_cast<void>(failure_ = made.error());
  decompressor_ = std::move(*made);
  response_->is_decompressed_ = true;
}

std::size_t CallState::show(Bytes bytes) {
  if (is_redirecting()) {
    shown_ += bytes.size();
    return bytes.size();
  }
  is_showing_ = true;
  const std::size_t used = decompressor_ ? inflate(bytes) : bytes.size();
  if (!decompressor_) receive(bytes);
  is_showing_ = false;
  return used;
}

std::size_t CallState::inflate(Bytes bytes) {
  const std::size_t size = bytes.size();
  do {
    Buffer piece;
    const auto state = decompressor_->next(bytes, piece, kPiece);
    has_more_ = state == Decompressor::State::full;
    if (state == Decompressor::State::broken) {
      failure_ = error_of_decoding(decompressor_->error());
      return size;
    }
    const Bytes shown = piece.flat(piece.size());
    if (!shown.empty()) receive(shown);
  } while (core_ != nullptr && !failure_ && !is_paused_ && (has_more_ || !bytes.empty()));
  return size - bytes.size();
}

void CallState::receive(Bytes bytes) {
  shown_ += bytes.size();
  if (shown_ > most_) {
    failure_ = HttpError::body_too_long;
  } else if (handler_ != nullptr) {
    handler_->on_body(bytes);
  } else if (!response_->content_.append(bytes)) {
    failure_ = system_error(ENOMEM);
  }
}

bool CallState::check_end() {
  const bool is_short = decompressor_ && !next_ && !decompressor_->is_done();
  if (is_short) failure_ = HttpError::bad_encoding;
  return !is_short;
}

void CallState::tell_end() {
  if (handler_ != nullptr && has_body_) handler_->on_body_end(trailers);
}

void CallState::tell_closed(std::error_code error) {
  CallHandler* handler = std::exchange(handler_, nullptr);
  if (handler != nullptr) return handler->on_closed(error);
  OnResponse on_response = std::exchange(on_response_, nullptr);
  if (!on_response) return;
  if (error) return on_response(std::unexpected(error));
  Response response = std::move(*response_);
  response.trailers_ = std::move(trailers);
  response.body_ = response.content_.flat(response.content_.size());
  if (response.body_.size() < response.content_.size())
    return on_response(std::unexpected(system_error(ENOMEM)));
  on_response(std::move(response));
}

void CallState::tell_upgraded(Stream stream) {
  CallHandler* handler = std::exchange(handler_, nullptr);
  if (handler != nullptr) handler->on_upgraded(*response_, std::move(stream));
}

// ---- redirects

void CallState::plan_redirect() {
  next_.reset();
  const auto location = response_->fields_.find(FieldId::location);
  if (options_.max_redirects == 0 || !location || !is_redirection(response_->status_)) return;
  if (!drops_body(response_->status_) && !body_.may_begin()) return;
  const Result<Url> target = target_of(*location);
  if (redirects_ >= options_.max_redirects) {
    failure_ = HttpError::too_many_redirects;
  } else if (!target || !core_->can_reach(*target)) {
    failure_ = HttpError::bad_redirect;
  } else {
    next_ = *target;
  }
}

// Without a fragment of its own, a redirect keeps the one there was (RFC 9110 §10.2.2).
Result<Url> CallState::target_of(std::string_view location) const {
  Result<Url> target = url_->resolve(location);
  if (!target || target->has_fragment() || !url_->has_fragment()) return target;
  return Url::parse(target->to_string() + "#" + std::string(url_->fragment()));
}

// It goes on as GET, or as HEAD.
bool CallState::drops_body(Status status) const {
  if (status == Status::see_other) return true;
  const bool may_change = status == Status::moved_permanently || status == Status::found;
  return may_change && options_.method == Method::post;
}

bool CallState::is_too_long_to_discard() const {
  return is_redirecting() && (body_left > kMostDiscarded || shown_ > kMostDiscarded);
}

void CallState::redirect() {
  const Url target = *std::exchange(next_, std::nullopt);
  ++redirects_;
  if (drops_body(response_->status_)) {
    if (options_.method != Method::head) options_.method = Method::get;
    body_.drop();
    for (const FieldId id :
         {FieldId::content_type, FieldId::content_encoding, FieldId::content_language})
      options_.fields.remove(id);
  }
  if (!target.has_origin_of(*url_)) {
    for (const FieldId id :
         {FieldId::authorization, FieldId::cookie, FieldId::host, FieldId::proxy_authorization})
      options_.fields.remove(id);
    options_.address = {};
  }
  options_.target.clear();
  url_ = target;
  response_.reset();
  has_repeated_ = needs_fresh_ = false;
  refusals_ = 0;
  informational_ = 0;
  choose_route();
}

}  // namespace spate::http
