#include "http/server/exchange_state.h"
#include "http/codec/system_error.h"

#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/chunked.h"
#include "http/server/exchange_pool.h"
#include "http/server/owned_handler.h"
#include "http/server/server_core.h"
#include "http/server/uncoded.h"
#include "spate/error.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::http {

namespace {

// The fields that only the server may set.
constexpr std::uint64_t kOwnFields = kFramingFields | bit_of(FieldId::date);

bool may_send(const Fields& fields, std::uint64_t own) {
  return fields.is_complete() && !fields.view().contains_any(own);
}

std::error_code closed() { return system_error(EPIPE); }

}  // namespace

std::error_code error_of(const Refusal& refusal) {
  if (refusal.status == Status::request_timeout) return Error::read_timeout;
  const int number = refusal.status == Status::content_too_large ? EMSGSIZE : EBADMSG;
  return system_error(number);
}

ExchangeState::ExchangeState(ExchangePool& pool) : pool_(pool) {}
ExchangeState::~ExchangeState() { drop_compressor(); }

Loop& ExchangeState::loop() const { return pool_.loop(); }

// ---- the response

bool ExchangeState::may_begin(const ServerResponseHead& response) {
  if (!may_respond()) return false;
  const bool may_be_sent = response.fields == nullptr || may_send(*response.fields, kOwnFields);
  return (may_be_sent && !is_informational(response.status)) || note_refusal(EINVAL);
}

bool ExchangeState::note_refusal(int error) {
  refused_with_ = error;
  return false;
}

// Only upgrade() may begin a tunnel. Any other 2xx response to CONNECT, or over HTTP/2 to an
// upgrade, would announce one that does not exist (RFC 9110 section 9.3.6).
Status ExchangeState::status_to_send(Status status) const {
  const bool asks_tunnel = view().method == Method::connect ||
                           (view().version == Version::http_2 && body_.asks_upgrade());
  return asks_tunnel && is_success(status) ? Status::not_implemented : status;
}

void ExchangeState::on_begun(const ServerResponseHead& response) {
  response_.begin(response.status, response.size);
  refused_with_ = 0;
}

inline bool ExchangeState::send_head(const ServerResponseHead& response, Bytes content) {
  if (additions_ != nullptr && !call_before_response(response.status)) return false;
  if (!wire_->send_head(*this, response, content)) return false;
  on_begun(response);
  return true;
}

bool ExchangeState::respond(ServerResponseHead response, Bytes content) {
  if (!may_begin(response)) return false;
  response.status = status_to_send(response.status);
  response.size = content.size();
  const CodingChoice choice = choose_coding(response);
  return choice == CodingChoice::unsuitable ? respond_plainly(response, content)
                                            : respond_as(choice, response, content);
}

bool ExchangeState::respond_plainly(const ServerResponseHead& response, Bytes content) {
  if (!send_head(response, content)) return false;
  response_.count_sent(content.size());
  end_response();
  return true;
}

bool ExchangeState::respond(ServerResponseHead response, Buffer&& content) {
  if (!may_begin(response)) return false;
  response.status = status_to_send(response.status);
  response.size = content.size();
  // Compression needs the bytes in one piece. Without memory for it, they are sent as they are.
  if (choose_coding(response) != CodingChoice::unsuitable) {
    const Bytes flat = content.flat(content.size());
    if (flat.size() == content.size()) return respond(response, flat);
  }
  return begin_plainly(response) && write(std::move(content)) && end({});
}

bool ExchangeState::begin(ServerResponseHead response) {
  if (!may_begin(response)) return false;
  response.status = status_to_send(response.status);
  const CodingChoice choice = choose_coding(response);
  return choice == CodingChoice::unsuitable ? begin_plainly(response) : begin_as(choice, response);
}

bool ExchangeState::begin_plainly(const ServerResponseHead& response) {
  return send_head(response, {});
}

void ExchangeState::took(std::uint64_t size) {
  if (compressor_ == nullptr) response_.count_sent(size);
  response_.count_written(size);
}

bool ExchangeState::write(Bytes bytes) {
  if (!takes(bytes.size())) return false;
  if (!response_.drops_body() && !bytes.empty()) {
    const bool is_sent =
        compressor_ == nullptr ? wire_->send(*this, bytes) : write_compressed(bytes);
    if (!is_sent) return false;
  }
  took(bytes.size());
  return true;
}

bool ExchangeState::write(Buffer&& buffer) {
  const std::size_t size = buffer.size();
  if (!takes(size)) return false;
  if (!response_.drops_body() && compressor_ != nullptr) {
    const Bytes flat = buffer.flat(size);
    if (flat.size() < size || !write(flat)) return false;
    buffer.clear();
    return true;
  }
  if (response_.drops_body()) {
    buffer.clear();
  } else if (size != 0 && !wire_->send(*this, std::move(buffer))) {
    return false;
  }
  took(size);
  return true;
}

std::error_code ExchangeState::send_file(int file, std::uint64_t offset, std::uint64_t size,
                                         ThreadPool& pool) {
  if (!takes(size)) return closed();
  if (response_.drops_body()) {
    close_descriptors({&file, 1});
  } else if (compressor_ != nullptr) {
    if (const std::error_code error = queue_uncoded(file, offset, size, pool)) return error;
  } else if (const std::error_code error = wire_->send_file(*this, file, offset, size, pool)) {
    return error;
  }
  took(size);
  return {};
}

bool ExchangeState::end(const Fields& behind) {
  if (!takes(0) || !may_be_trailers(behind)) return false;
  if (response_.is_short()) return give_up(), false;
  if (has_uncoded()) return end_later(behind);
  if (compressor_ != nullptr && !end_compression()) return give_up(), false;
  if (!response_.drops_body() && !wire_->send_end(*this, behind)) return false;
  end_response();
  return true;
}

void ExchangeState::end_response() {
  response_.end();
  if (uses_ == 0) wire_->settle_later(*this);
}

bool ExchangeState::inform(const ServerResponseHead& response) {
  const bool is_interim =
      is_informational(response.status) && response.status != Status::switching_protocols;
  if (!may_respond() || !is_interim) return false;
  return may_send(*response.fields, kFramingFields) && wire_->inform(*this, response);
}

Result<Stream> ExchangeState::upgrade(std::string_view protocol, const Fields& fields) {
  if (!may_respond()) return std::unexpected(closed());
  const bool is_asked =
      protocol.empty()
          ? view().method == Method::connect
          : body_.asks_upgrade() && view().fields.list(FieldId::upgrade).contains(protocol);
  if (!is_asked || body_.exists()) return std::unexpected(system_error(EPROTO));
  if (!may_send(fields, kOwnFields)) return std::unexpected(system_error(EINVAL));
  const bool is_http1 = view().version != Version::http_2 && !protocol.empty();
  const Status status = is_http1 ? Status::switching_protocols : Status::ok;
  if (additions_ != nullptr && !call_before_response(status))
    return std::unexpected(system_error(EINVAL));
  return wire_->upgrade(*this, protocol, fields);
}

std::size_t ExchangeState::queued() const {
  if (wire_ == nullptr) return 0;
  const std::uint64_t uncoded = uncoded_ == nullptr ? 0 : uncoded_->out.size();
  return wire_->queued() + static_cast<std::size_t>(uncoded);
}

bool ExchangeState::is_full() const {
  return wire_ != nullptr && (wire_->is_full() || (uncoded_ != nullptr && uncoded_->is_full));
}

// ---- what middleware attaches

ExchangeAdditions* ExchangeState::additions() {
  if (additions_ == nullptr) additions_.reset(new (std::nothrow) ExchangeAdditions);
  return additions_.get();
}

bool ExchangeState::add_field(FieldName name, std::string_view value) {
  if (!may_respond() || (name.id != FieldId::other && (bit_of(name.id) & kOwnFields) != 0))
    return false;
  ExchangeAdditions* additions = this->additions();
  return additions != nullptr && additions->fields.add(name, value);
}

bool ExchangeState::add_fields(const Fields& fields) {
  return may_respond() && additions() != nullptr && additions_->fields.add_all(fields);
}

bool ExchangeState::before_response(BeforeResponse function) {
  if (!may_respond() || additions() == nullptr) return false;
  additions_->before_response.push_back(std::move(function));
  return true;
}

bool ExchangeState::on_end(OnExchangeEnd function) {
  if (wire_ == nullptr || additions() == nullptr) return false;
  additions_->on_end.push_back(std::move(function));
  return true;
}

bool ExchangeState::attach(AttributeNode* node) {
  const bool is_attached = wire_ != nullptr && additions() != nullptr;
  is_attached ? additions_->attach(node) : node->destroy(node);
  return is_attached;
}

// Each is called once, also if the header section cannot be sent, so that no field is added twice.
bool ExchangeState::call_before_response(Status status) {
  std::vector<BeforeResponse> functions = std::exchange(additions_->before_response, {});
  for (BeforeResponse& function : functions) {
    if (!guard([&] { function(status, additions_->fields); })) return false;
  }
  return may_send(additions_->fields, kOwnFields) || note_refusal(EINVAL);
}

// ---- beginning and end

void ExchangeState::attach(Wire& wire, Nanos now) {
  wire_ = &wire;
  began_ = now;
}

Refusal ExchangeState::open(const Framing& framing, ServerCore& server) {
  const ServerOptions& options = server.options();
  if (framing.size > options.max_body) return IncomingBody::kTooLong;
  began_ = server.time_of_request();
  body_.open(framing, options.max_body, began_);
  compression_ = options.compression;
  return {};
}

ExchangeState::Step ExchangeState::next_step(bool is_received) const {
  if (body_.is_flowing() && is_received) return Step::end_body;
  if (is_over()) return Step::finish;
  return response_.has_ended() && body_.is_waiting() ? Step::discard_body : Step::wait;
}

// The bytes after a refused CONNECT may be meant for the tunnel.
bool ExchangeState::allows_next(Status status) const {
  const bool is_refused_tunnel =
      view().method == Method::connect && status == Status::not_implemented;
  return body_.keeps_alive() && !is_refused_tunnel && body_.is_rest_short();
}

bool ExchangeState::set_deadline(Nanos timeout) {
  return wire_ != nullptr && wire_->set_deadline(timeout);
}

void ExchangeState::give_up() {
  handler_ = nullptr;
  if (wire_ != nullptr) wire_->abort(*this);
}

Address ExchangeState::peer() const {
  if (const Wire* wire = visible_wire()) return wire->peer();
  return end_ == nullptr ? Address() : end_->peer;
}

Address ExchangeState::client() const {
  if (const Wire* wire = visible_wire())
    return wire->server().client_of(view().fields, wire->peer(), wire->is_local());
  return end_ == nullptr ? Address() : end_->client;
}

std::optional<TlsInfo> ExchangeState::tls() const {
  if (const Wire* wire = visible_wire()) return wire->tls();
  return end_ == nullptr ? std::nullopt : end_->tls;
}

const Wire* ExchangeState::visible_wire() const {
  if (wire_ != nullptr) return wire_;
  return parted_.carrier != nullptr && !parted_.carrier->is_gone() ? parted_.wire : nullptr;
}

// The handle was destroyed: there will be no response by the user, and the rest of the body is
// discarded.
void ExchangeState::leave() {
  const Use use(*this);
  has_handle_ = false;
  handler_ = nullptr;
  end_without_handler();
}

void ExchangeState::end_without_handler() {
  if (wire_ == nullptr) return;
  if (response_.is_writable()) return give_up();
  // respond() clears refused_with_, but the log must have the reason.
  const int refused_with = refused_with_;
  if (!response_.has_begun() && !respond_failure()) return give_up();
  refused_with_ = refused_with;
  body_.abandon();
  if (uses_ == 1) wire_->settle_later(*this);  // Otherwise the caller on the stack settles it.
}

void ExchangeState::part(const Watch* carrier) {
  if (keepers_ != 0 && !header_.keep()) header_.forget();
  if (carrier != nullptr) parted_ = {.wire = wire_, .carrier = carrier};
  wire_ = nullptr;
  if (ExchangesInProgress::is_linked(*this)) ExchangesInProgress::remove(*this);
  if (DueExchanges::is_linked(*this)) DueExchanges::remove(*this);
  drop_compressor();
}

void ExchangeState::release_handler(std::error_code error) {
  const std::unique_ptr<OwnedHandler> owned = std::move(owned_);
  ExchangeHandler* handler = std::exchange(handler_, nullptr);
  if (handler != nullptr && owned == nullptr) guard([&] { handler->on_closed(error); });
}

void ExchangeState::detach_without_callback() {
  const Use use(*this);
  part();
  drop_handler();
}

bool ExchangeState::keep_end(std::error_code error, Nanos now) {
  if (!header_.keep()) return false;
  end_.reset(new (std::nothrow) End{
      .error = error, .at = now, .peer = peer(), .client = client(), .tls = tls()});
  uses_ += end_ != nullptr;
  return end_ != nullptr;
}

void ExchangeState::let_go_of_end() {
  --uses_;
  give_back_unless_used();
}

// Attributes are destroyed last: their destructors, which are the user's, may destroy the server.
void ExchangeState::give_back() {
  if (additions_ == nullptr) return pool_.give_back(this);
  const std::unique_ptr<ExchangeAdditions> additions = std::move(additions_);
  pool_.give_back(this);
}

// Prepares the state for its next request.
void ExchangeState::reset() {
  header_.clear();
  body_.clear();
  compression_ = Compression::none;
  is_counted_ = false;
  response_.clear();
  refused_with_ = 0;
  has_thrown_ = false;
  reason_ = {};
  route_.clear();
  end_.reset();
  drop_compressor();
}

}  // namespace spate::http
