#include "http/inspector/inspector_core.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/host.h"
#include "http/codec/system_error.h"
#include "http/inspector/page.h"
#include "spate/assert.h"
#include "spate/net/workers.h"

namespace spate::http {

namespace {

[[maybe_unused]] constexpr const char* kInOnRead = "an Inspector was used in its OnRead";

// What a viewer is told is all or nothing, and one that has not taken the last is not told.
constexpr std::size_t kNoLimit = SIZE_MAX / 2;

bool set_safe_fields(Fields& fields) {
  return fields.set(FieldId::cache_control, "no-store") &&
         fields.set("X-Content-Type-Options", "nosniff") && fields.set("X-Frame-Options", "DENY") &&
         fields.set("Cross-Origin-Resource-Policy", "same-origin") &&
         fields.set("Referrer-Policy", "no-referrer");
}

// An answer that nobody keeps, and no page of a stranger's gets to see.
void respond_safely(Exchange& exchange, std::string_view type, std::string_view body,
                    std::string_view policy = "default-src 'none'") {
  Fields fields;
  if (set_safe_fields(fields) && fields.set(FieldId::content_type, type) &&
      fields.set("Content-Security-Policy", policy))
    exchange.respond(Status::ok, fields, bytes_of(body));
}

bool is_loopback(const Address& address) {
  const Address plain = address.unmapped();
  switch (plain.family()) {
    case Address::Family::ipv4:
      return plain.ip_bytes()[0] == std::byte{127};
    case Address::Family::ipv6:
      return plain.with_port(0) == Address::loopback_ipv6(0);
    case Address::Family::local:
      return true;
    case Address::Family::none:
      return false;
  }
  return false;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

Result<std::unique_ptr<InspectorCore>> InspectorCore::create(Loop& loop, InspectorOptions options) {
  if (options.period <= Nanos{0} || options.patience < Nanos{0})
    return std::unexpected(system_error(EINVAL));
  std::unique_ptr<InspectorCore> core(new (std::nothrow) InspectorCore(loop, std::move(options)));
  if (core == nullptr || !core->loop_ends_.start()) return std::unexpected(system_error(ENOMEM));
  return core;
}

InspectorCore::InspectorCore(Loop& loop, InspectorOptions options)
    : loop_(loop),
      options_(std::move(options)),
      desk_(std::make_shared<Desk>(loop, static_cast<Asking&>(*this))),
      tick_(loop, [this] { on_tick(); }),
      patience_(loop, [this] { end_round(); }),
      loop_ends_(loop, [this] { end(); }) {}

InspectorCore::~InspectorCore() { end(); }

// Also when its loop ends; what is left of it then refuses.
void InspectorCore::end() {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  if (desk_ == nullptr) return;
  while (!sources_.empty()) remove(sources_.back().name);
  desk_->close();
  desk_ = nullptr;
  waiting_.clear();
  viewers_.clear();
  server_.reset();
  tick_.stop();
  patience_.stop();
}

// ---- what is shown

InspectorCore::Source& InspectorCore::add_source(std::string_view name) {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  SPATE_ASSERT(std::ranges::find(sources_, name, &Source::name) == sources_.end(),
               "the Inspector shows another thing of this name");
  return sources_.emplace_back(
      Source{.name = std::string(name), .family = {}, .loops = {}, .read = {}});
}

void InspectorCore::watch(Source& source, std::shared_ptr<WatchedLoop> loop) {
  if (is_measuring()) measure(*loop, true);
  source.loops.push_back(std::move(loop));
}

void InspectorCore::add(std::string_view name, Loop& loop) {
  if (desk_ == nullptr) return;
  watch(add_source(name), std::make_shared<WatchedLoop>(desk_, std::string(name), loop));
}

void InspectorCore::add(std::string_view name, Workers& workers) {
  if (desk_ == nullptr) return;
  Source& source = add_source(name);
  for (unsigned i = 0; i < workers.count(); ++i) {
    std::string worker = std::string(name) + '/' + std::to_string(i);
    watch(source, std::make_shared<WatchedLoop>(desk_, std::move(worker), workers, i));
  }
}

void InspectorCore::add(std::string_view name, std::string_view family, OnRead read) {
  if (desk_ == nullptr) return;
  Source& source = add_source(name);
  source.family = family;
  source.read = std::move(read);
}

// Of a loop that still owes its answer nothing is waited for.
void InspectorCore::remove(std::string_view name) {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  const auto source = std::ranges::find(sources_, name, &Source::name);
  if (source == sources_.end()) return;
  for (const auto& loop : source->loops) {
    if (is_measuring()) measure(*loop, false);
    if (is_asking_ && loop->round == round_ && loop->is_asked()) --awaited_;
    loop->round = 0;
  }
  sources_.erase(source);
  if (is_asking_ && awaited_ == 0) patience_.start(Nanos{0});
}

void InspectorCore::measure(WatchedLoop& loop, bool on) {
  &loop.loop() == &loop_ ? loop.measure(on) : loop.ask_to_measure(on);
}

// ---- who looks

Result<Address> InspectorCore::listen(const Address& address) {
  if (desk_ == nullptr) return std::unexpected(system_error(ECANCELED));
  if (options_.reach == Reach::this_host && !is_loopback(address))
    return std::unexpected(system_error(EPERM));
  if (!server_) {
    auto server =
        Server::create(loop_, [this](Exchange exchange) { serve_own(std::move(exchange)); });
    if (!server) return std::unexpected(server.error());
    server_.emplace(std::move(*server));
  }
  return server_->listen(address, {.max_connections = kMostConnections});
}

// A page of a stranger's whose name leads here says that name. A program that says none is no
// browser.
bool InspectorCore::is_for_this_host(std::string_view host) const {
  const auto parts = parse_host(host);
  if (!parts) return false;
  const std::string_view name = parts->host;
  return name.empty() || name.starts_with('[') || is_ipv4(name) ||
         equal_ignoring_case(name, "localhost") ||
         std::ranges::any_of(options_.hosts, [name](const std::string& known) {
           return equal_ignoring_case(name, known);
         });
}

void InspectorCore::serve_own(Exchange exchange) {
  if (!is_for_this_host(exchange.request().host())) {
    exchange.respond(Status::forbidden, "This host is not called that. See InspectorOptions.\n");
    return;
  }
  serve(std::move(exchange));
}

void InspectorCore::serve(Exchange exchange) {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  if (!exchange.is_open()) return;
  SPATE_ASSERT(&exchange.loop() == &loop_, "an Inspector serves what comes to its own loop");
  const Request& request = exchange.request();
  if (request.method() != Method::get && request.method() != Method::head) {
    Fields fields;
    if (fields.set(FieldId::allow, "GET, HEAD"))
      exchange.respond(Status::method_not_allowed, fields);
    return;
  }
  const std::string_view path = request.path();
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.empty()) return show_page(std::move(exchange));
  if (name == "state.json") return answer_later(std::move(exchange), Form::json);
  if (name == "metrics") return answer_later(std::move(exchange), Form::prometheus);
  if (name == "events") return open_events(std::move(exchange));
  exchange.respond(Status::not_found);
}

void InspectorCore::show_page(Exchange exchange) {
  respond_safely(exchange, "text/html; charset=utf-8", kInspectorPage, kInspectorPagePolicy);
}

void InspectorCore::answer_later(Exchange exchange, Form form) {
  if (desk_ == nullptr || waiting_.size() >= kMostWaiting) {
    exchange.respond(Status::service_unavailable);
    return;
  }
  waiting_.push_back({std::move(exchange), form});
  begin_round();
}

void InspectorCore::open_events(Exchange exchange) {
  drop_closed_viewers();
  if (desk_ == nullptr || viewers_.size() >= options_.max_viewers) {
    exchange.respond(Status::service_unavailable, "Too many look already.\n");
    return;
  }
  Fields fields;
  if (!set_safe_fields(fields)) return;
  EventStream stream = EventStream::open(std::move(exchange),
                                         {.heartbeat = Nanos{0}, .max_queued = kNoLimit}, fields);
  if (!stream.is_open()) return;
  viewers_.push_back(std::move(stream));
  viewers_.back().set_on_closed([this](std::error_code) { drop_closed_viewers(); });
  tick_.start(Nanos{0}, options_.period);  // When its head has been sent.
}

void InspectorCore::drop_closed_viewers() {
  if (viewers_.empty()) return;
  viewers_.remove_if([](const EventStream& viewer) { return !viewer.is_open(); });
  if (!viewers_.empty()) return;
  tick_.stop();
  if (is_measuring()) return;
  for (const Source& source : sources_) {
    for (const auto& loop : source.loops) measure(*loop, false);
  }
}

// What a viewer has not taken yet says enough.
bool InspectorCore::has_reader() const {
  return std::ranges::any_of(viewers_, [](const EventStream& each) { return each.queued() == 0; });
}

void InspectorCore::on_tick() {
  drop_closed_viewers();
  if (has_reader()) begin_round();
}

// ---- rounds

void InspectorCore::begin_round() {
  if (is_asking_) return;
  is_asking_ = true;
  ++round_;
  awaited_ = 0;
  for (const Source& source : sources_) {
    for (const auto& loop : source.loops) ask(*loop);
  }
  if (awaited_ == 0 || !patience_.start(options_.patience)) end_round();
}

void InspectorCore::ask(WatchedLoop& loop) {
  if (&loop.loop() == &loop_) {
    loop.report = loop.answer(is_measuring(), options_.max_streams);
    return;
  }
  if (loop.is_asked()) return;
  loop.round = round_;
  loop.asked_at = loop_.now();
  ++awaited_;
  loop.ask(is_measuring(), options_.max_streams);
}

void InspectorCore::on_answer(WatchedLoop& loop, std::optional<LoopReport> report) {
  loop.has_answered();
  loop.has_ended = !report;
  if (report) loop.report = std::move(report);
  if (is_asking_ && loop.round == round_ && --awaited_ == 0) end_round();
}

// Writes down first, and tells then: whoever is told may have this destroyed (an access log).
void InspectorCore::end_round() {
  patience_.stop();
  is_asking_ = false;
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  const bool is_json_wanted = has_reader() || has_form(waiting, Form::json);
  const bool is_text_wanted = has_form(waiting, Form::prometheus);
  const State now = state();
  const std::string json = is_json_wanted ? json_of(now) : std::string();
  const std::string text = is_text_wanted ? prometheus_text_of(now) : std::string();
  for (EventStream& viewer : viewers_) {
    if (viewer.queued() == 0) viewer.send(json);
  }
  answer(waiting, json, text);
}

bool InspectorCore::has_form(const std::vector<Waiting>& waiting, Form form) {
  return std::ranges::find(waiting, form, &Waiting::form) != waiting.end();
}

void InspectorCore::answer(std::span<Waiting> waiting, std::string_view json,
                           std::string_view text) {
  for (Waiting& each : waiting) {
    const bool is_json = each.form == Form::json;
    respond_safely(each.exchange, is_json ? "application/json" : kPrometheusType,
                   is_json ? json : text);
  }
}

State InspectorCore::state() {
  State state{.time = loop_.wall_now(),
              .period = options_.period,
              .viewers = viewers_.size(),
              .loops = {},
              .sources = {}};
  is_reading_ = true;
  for (Source& source : sources_) {
    for (const auto& loop : source.loops) state.loops.push_back(state_of(source, *loop));
    if (!source.read) continue;
    state.sources.push_back({source.name, source.family, {}});
    source.read(state.sources.back().readings);
  }
  is_reading_ = false;
  return state;
}

LoopState InspectorCore::state_of(const Source& source, const WatchedLoop& loop) const {
  LoopState state{.source = source.name,
                  .name = loop.name(),
                  .status = loop.has_ended ? LoopStatus::ended : LoopStatus::answers,
                  .report = loop.report ? &*loop.report : nullptr,
                  .silent = loop.is_asked() ? loop_.now() - loop.asked_at : Nanos{0},
                  .running = {}};
  if (!loop.is_asked() || state.silent < options_.patience) return state;
  state.status = LoopStatus::blocked;
  state.running = loop.loop().running_callback();
  return state;
}

}  // namespace spate::http
