// CallState's response: its header section, its body, and redirects.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "http/client/call_state.h"
#include "http/client/client_core.h"
#include "http/codec/characters.h"
#include "http/codec/system_error.h"
#include "spate/http/error.h"

namespace spate::http {

namespace {

// Up to this much of a redirect's body is read, so that the connection can be used again.
constexpr std::uint64_t kMostDiscarded = 64 * 1024;
// Bytes that are decompressed at a time.
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
  note_progress();
  if (head.status == Status::switching_protocols) return false;
  if (++informational_ > kMostInformational) return false;
  if (head.status == Status::continue_) {
    let_body_go();
  } else if (handler_ != nullptr) {
    was_seen_ = true;
    handler_->on_informational(head.status, head.fields);
  }
  return true;
}

void CallState::take_head(const ResponseView& head, const Framing& how) {
  stop_waiting_for_continue();
  note_progress();
  framing = how;
  body_left = how.size;
  has_body_ = how.body != BodyKind::none;
  chunks = ChunkedDecoder(ChunkedDecoder::Blanks::passed);
  trailers.clear();
  shown_ = 0;
  response_.emplace(Response(*url_));
  response_->status_ = head.status;
  response_->version_ = head.version;
  response_->reason_ = head.reason;
  if (!response_->fields_.add_all(head.fields)) failure_ = system_error(ENOMEM);
  core_->keep_cookies(*url_, head.fields);
  plan_redirect();
  plan_retry();
  // The response of a redirect that is followed, or of a retry, is not reported.
  if (failure_ || is_redirecting()) return;
  plan_decoding();
  const bool is_told = !failure_ && head.status != Status::switching_protocols;
  if (!is_told || handler_ == nullptr) return;
  was_seen_ = true;
  handler_->on_response(*response_);
}

// ---- the body

void CallState::plan_decoding() {
  decompressor_.reset();
  if (!options_.decompress || framing.body == BodyKind::none) return;
  std::string_view name;
  for (const std::string_view each : response_->fields_.view().list(FieldId::content_encoding)) {
    if (equal_ignoring_case(each, "identity")) continue;
    // Only one coding is supported.
    if (!name.empty()) return static_cast<void>(failure_ = HttpError::bad_encoding);
    name = each;
  }
  const auto coding = coding_of(name);
  if (!coding) return;
  Result<Decompressor> made = Decompressor::make(*coding, most_);
  if (!made) return static_cast<void>(failure_ = made.error());
  decompressor_ = std::move(*made);
  response_->is_decompressed_ = true;
}

std::size_t CallState::show(Bytes bytes) {
  note_progress();
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

// A compressed body that ends early is an error, even if its framing is complete.
bool CallState::check_end() {
  const bool is_short = decompressor_ && !is_redirecting() && !decompressor_->is_done();
  if (is_short) failure_ = HttpError::bad_encoding;
  return !is_short;
}

void CallState::report_end() {
  if (handler_ != nullptr && has_body_) handler_->on_body_end(trailers);
}

void CallState::report_closed(std::error_code error) {
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

void CallState::report_upgraded(Stream stream) {
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

// A redirect without a fragment keeps that of the URL (RFC 9110 §10.2.2).
Result<Url> CallState::target_of(std::string_view location) const {
  Result<Url> target = url_->resolve(location);
  if (!target || target->has_fragment() || !url_->has_fragment()) return target;
  return Url::parse(target->to_string() + "#" + std::string(url_->fragment()));
}

// Returns whether the redirect continues as GET (or HEAD) without a body.
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
  // Credentials and the address to connect to belong to the old origin.
  if (!target.has_origin_of(*url_)) {
    for (const FieldId id :
         {FieldId::authorization, FieldId::cookie, FieldId::host, FieldId::proxy_authorization})
      options_.fields.remove(id);
    options_.address = {};
    options_.proxy_header.clear();
  }
  options_.target.clear();
  url_ = target;
  forget_response();
  choose_route();
}

void CallState::forget_response() {
  response_.reset();
  decompressor_.reset();
  failure_ = {};
  has_repeated_ = needs_fresh_ = has_more_ = false;
  refusals_ = 0;
  informational_ = 0;
}

}  // namespace spate::http
