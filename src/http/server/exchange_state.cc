#include "http/server/exchange_state.h"
#include "http/codec/system_error.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "http/codec/request_check.h"
#include "http/server/body_reader.h"
#include "http/server/exchange_pool.h"
#include "spate/error.h"
#include "spate/http/url.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::http {

namespace {

// What only the server sets.
constexpr std::uint64_t kOwnFields = kFramingFields | bit_of(FieldId::date);

std::error_code closed() { return system_error(EPIPE); }

// Before the rate of a body is looked at.
constexpr Nanos kRateGrace{10'000'000'000};

}  // namespace

std::error_code error_of(const Refusal& refusal) {
  if (refusal.status == Status::request_timeout) return Error::read_timeout;
  const int number = refusal.status == Status::content_too_large ? EMSGSIZE : EBADMSG;
  return system_error(number);
}

ExchangeState::ExchangeState(ExchangePool& pool) : pool_(pool) {}
ExchangeState::~ExchangeState() { drop_compressor(); }

Loop& ExchangeState::loop() const { return pool_.loop(); }

// ---- the answer

bool ExchangeState::may_begin(const AnswerHead& answer) const {
  return wire_ != nullptr && answer_ == Answer::none && !is_informational(answer.status) &&
         (answer.fields == nullptr || !answer.fields->view().contains_any(kOwnFields));
}

void ExchangeState::on_begun(const AnswerHead& answer) {
  status_ = answer.status;
  answer_ = Answer::begun;
  drops_body_ = outgoing.body == BodyKind::none;
  is_sized_ = answer.size.has_value();
  left_ = answer.size.value_or(0);
  last_progress = loop().now();
}

bool ExchangeState::respond(AnswerHead answer, Bytes content) {
  if (!may_begin(answer)) return false;
  answer.size = content.size();
  const CodingChoice choice = choose_coding(answer);
  return choice == CodingChoice::unsuitable ? respond_plainly(answer, content)
                                            : respond_as(choice, answer, content);
}

bool ExchangeState::respond_plainly(const AnswerHead& answer, Bytes content) {
  const Bytes sent = may_have_content(view().method, answer.status) ? content : Bytes();
  if (!wire_->send_head(*this, answer, sent)) return false;
  on_begun(answer);
  sent_ = sent.size();
  end_answer();
  return true;
}

// The reason is a word for who reads the answer.
void ExchangeState::respond_refusal(const Refusal& refusal) {
  respond({.status = refusal.status, .content_type = Exchange::kText},
          bytes_of(std::string_view(refusal.reason)));
}

bool ExchangeState::respond(AnswerHead answer, Buffer&& content) {
  if (!may_begin(answer)) return false;
  answer.size = content.size();
  if (choose_coding(answer) != CodingChoice::unsuitable) {
    const Bytes flat = content.flat(content.size());
    if (flat.size() == content.size()) return respond(answer, flat);
  }
  if (!wire_->send_head(*this, answer, {})) return false;
  on_begun(answer);
  return write(std::move(content)) && end({});
}

bool ExchangeState::begin(AnswerHead answer) {
  if (!may_begin(answer)) return false;
  const CodingChoice choice = choose_coding(answer);
  return choice == CodingChoice::unsuitable ? begin_plainly(answer) : begin_as(choice, answer);
}

bool ExchangeState::begin_plainly(const AnswerHead& answer) {
  if (!wire_->send_head(*this, answer, {})) return false;
  on_begun(answer);
  return true;
}

bool ExchangeState::takes(std::uint64_t size) const {
  return wire_ != nullptr && answer_ == Answer::begun && (!is_sized_ || size <= left_);
}

void ExchangeState::took(std::uint64_t size) {
  if (compressor_ == nullptr) sent_ += size;
  if (is_sized_) left_ -= size;
}

bool ExchangeState::write(Bytes bytes) {
  if (!takes(bytes.size())) return false;
  if (!drops_body_ && !bytes.empty()) {
    const bool is_sent = compressor_ == nullptr ? wire_->send(*this, bytes) : compress(bytes);
    if (!is_sent) return false;
  }
  took(bytes.size());
  return true;
}

bool ExchangeState::write(Buffer&& buffer) {
  const std::size_t size = buffer.size();
  if (!takes(size)) return false;
  if (!drops_body_ && compressor_ != nullptr) {
    const Bytes flat = buffer.flat(size);
    if (flat.size() < size || !write(flat)) return false;
    buffer.clear();
    return true;
  }
  if (drops_body_) {
    buffer.clear();
  } else if (size != 0 && !wire_->send(*this, std::move(buffer))) {
    return false;
  }
  took(size);
  return true;
}

std::error_code ExchangeState::send_file(int file, std::uint64_t offset, std::uint64_t size) {
  if (!takes(size)) return closed();
  if (drops_body_) {
    close_descriptors({&file, 1});
  } else if (compressor_ != nullptr) {
    if (const std::error_code error = compress_file(file, offset, size)) return error;
    close_descriptors({&file, 1});
    return {};
  } else if (const std::error_code error = wire_->send_file(*this, file, offset, size)) {
    return error;
  }
  took(size);
  return {};
}

bool ExchangeState::end(const Fields& behind) {
  if (!takes(0)) return false;
  const bool is_short = is_sized_ && left_ != 0 && !drops_body_;
  if (is_short) return give_up(), false;
  if (compressor_ != nullptr && !end_compression()) return give_up(), false;
  if (!drops_body_ && !wire_->send_end(*this, behind)) return false;
  end_answer();
  return true;
}

void ExchangeState::end_answer() {
  answer_ = Answer::ended;
  if (uses_ == 0) wire_->settle_later(*this);
}

bool ExchangeState::inform(const AnswerHead& answer) {
  if (wire_ == nullptr || answer_ != Answer::none || !is_informational(answer.status)) return false;
  return wire_->inform(*this, answer);
}

Result<Stream> ExchangeState::upgrade(std::string_view protocol, const Fields& fields) {
  if (wire_ == nullptr || answer_ != Answer::none) return std::unexpected(closed());
  const bool is_asked =
      protocol.empty()
          ? view().method == Method::connect
          : framing.asks_upgrade && view().fields.list(FieldId::upgrade).contains(protocol);
  if (!is_asked || body != Body::none) return std::unexpected(system_error(EPROTO));
  return wire_->upgrade(*this, protocol, fields);
}

// ---- the request's body

bool ExchangeState::start(ExchangeHandler& handler) {
  if (wire_ == nullptr) return false;
  handler_ = &handler;
  if (body == Body::waiting) {
    body = Body::reading;
    begin_reading();
  }
  wire_->read_body(*this);
  return true;
}

void ExchangeState::begin_reading() {
  reading_since = last_arrival = loop().now();
  received_before = received;
}

// Without a body it is told so, too.
bool ExchangeState::start(std::unique_ptr<BodyReader> reader) {
  if (wire_ == nullptr) return false;
  if (body == Body::none) body = Body::waiting;
  reader_ = std::move(reader);
  return start(*reader_);
}

bool ExchangeState::is_body_slow(Nanos timeout, std::uint64_t min_rate, Nanos now) const {
  if (!is_reading() && body != Body::discarded) return false;
  if (timeout > Nanos{0} && now - last_arrival >= timeout) return true;
  const Nanos elapsed = now - reading_since;
  const auto seconds = static_cast<std::uint64_t>(elapsed / Nanos{1'000'000'000});
  return elapsed > kRateGrace && received - received_before < seconds * min_rate;
}

std::unique_ptr<BodyReader> ExchangeState::take_reader() {
  handler_ = nullptr;
  return std::move(reader_);
}

// What nobody is told of is not to wait.
void ExchangeState::pause() {
  if (wire_ == nullptr || body == Body::discarded || std::exchange(is_paused_, true)) return;
  wire_->pause(*this);
}

void ExchangeState::resume() {
  if (!std::exchange(is_paused_, false) || wire_ == nullptr) return;
  begin_reading();
  wire_->read_body(*this);
}

std::string ExchangeState::param(std::string_view name) const {
  for (const Param& param : std::span(params).first(param_count)) {
    if (param.name != name) continue;
    const std::string_view value = target.path.substr(param.at, param.size);
    return percent_decode(value).value_or(std::string(value));
  }
  return {};
}

// ---- how it begins and ends

void ExchangeState::attach(Wire& wire, Nanos now) {
  wire_ = &wire;
  began = now;
}

void ExchangeState::open(const Framing& what, Nanos now) {
  framing = what;
  began = last_arrival = now;
  body = framing.body == BodyKind::none ? Body::none : Body::waiting;
  body_left = framing.size;
  if (framing.body == BodyKind::chunked) {
    chunks = {};
    trailers.clear();
  }
}

bool ExchangeState::keep_head() {
  if (!kept_.empty()) return true;
  if (!kept_.copy(head_text, head)) return false;
  view_ = &kept_.view();
  check_request(*view_, target);  // Which refers to the copy now.
  return true;
}

bool ExchangeState::set_deadline(Nanos timeout) {
  if (wire_ == nullptr || !wire_->set_deadline(timeout)) return false;
  has_deadline = timeout != Nanos{0};
  return true;
}

void ExchangeState::give_up() {
  handler_ = nullptr;
  if (wire_ != nullptr) wire_->abort(*this);
}

// Nobody answers any more, and nobody wants what is left of the body.
void ExchangeState::leave() {
  const Use use(*this);
  has_handle_ = false;
  handler_ = nullptr;
  if (wire_ == nullptr) return;
  if (answer_ == Answer::begun) return give_up();
  const AnswerHead failure = {.status = Status::internal_server_error};
  if (answer_ == Answer::none && !respond(failure, Bytes())) return give_up();
  if (body == Body::reading) body = Body::waiting;
  if (uses_ == 1) wire_->settle_later(*this);  // Else whoever called sees to it.
}

void ExchangeState::detach(std::error_code error) {
  const Use use(*this);
  wire_ = nullptr;
  ExchangeList::remove(*this);
  drop_compressor();
  const std::unique_ptr<BodyReader> reader = std::move(reader_);
  ExchangeHandler* handler = std::exchange(handler_, nullptr);
  if (handler != nullptr && reader == nullptr) handler->on_closed(error);
}

void ExchangeState::detach_unheard() {
  handler_ = nullptr;
  detach({});
}

void ExchangeState::give_back_unless_used() {
  if (uses_ == 0 && wire_ == nullptr && !has_handle_) pool_.give_back(this);
}

// For the next one.
void ExchangeState::reset() {
  static_cast<RequestView&>(head) = {};
  target = {};
  looked_at = 0;
  body = Body::none;
  received = 0;
  max_body = UINT64_MAX;
  compression = Compression::none;
  taken = 0;
  param_count = 0;
  view_ = &head;
  kept_.clear();
  drop_compressor();
  left_ = sent_ = 0;
  is_sized_ = false;
  answer_ = Answer::none;
  drops_body_ = is_paused_ = has_deadline = is_counted = false;
}

}  // namespace spate::http
