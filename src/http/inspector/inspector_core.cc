#include "http/inspector/inspector_core.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "http/codec/host.h"
#include "http/codec/system_error.h"
#include "http/inspector/page.h"
#include "spate/assert.h"
#include "spate/http/negotiate.h"
#include "spate/named_callback.h"
#include "spate/net/workers.h"

namespace spate::http {

namespace {

[[maybe_unused]] constexpr const char* kInOnRead = "an Inspector was used in its OnRead";

// No limit, because an event is sent only to viewers that have taken the last one.
constexpr std::size_t kNoLimit = SIZE_MAX / 2;

bool set_safe_fields(Fields& fields) {
  return fields.set(FieldId::cache_control, "no-store") &&
         fields.set("X-Content-Type-Options", "nosniff") && fields.set("X-Frame-Options", "DENY") &&
         fields.set("Cross-Origin-Resource-Policy", "same-origin") &&
         fields.set("Referrer-Policy", "no-referrer");
}

// Sends a response that is not cached, and that foreign pages cannot read.
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
  if (options.period <= Nanos{0} || options.response_timeout < Nanos{0})
    return std::unexpected(system_error(EINVAL));
  std::unique_ptr<InspectorCore> core(new (std::nothrow) InspectorCore(loop, std::move(options)));
  if (core == nullptr || !core->loop_ends_.start()) return std::unexpected(system_error(ENOMEM));
  return core;
}

InspectorCore::InspectorCore(Loop& loop, InspectorOptions options)
    : loop_(loop),
      options_(std::move(options)),
      inbox_(std::make_shared<ReportInbox>(loop, static_cast<ReportReceiver&>(*this))),
      tick_(loop, named<Timer, ActiveKind::inspector>([this] { on_tick(); })),
      response_timer_(loop, named<Timer, ActiveKind::inspector>([this] { end_round(); })),
      loop_ends_(loop, [this] { end(); }) {}

InspectorCore::~InspectorCore() { end(); }

// Called by the destructor, and when the loop is destroyed. The functions of the rest then fail.
void InspectorCore::end() {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  if (inbox_ == nullptr) return;
  std::vector<OnRead> functions;  // Destroyed last: they may own the Inspector.
  for (Source& source : sources_) functions.push_back(std::move(source.read));
  while (!sources_.empty()) remove(sources_.back().name);
  inbox_->close();
  inbox_ = nullptr;
  waiting_.clear();
  viewers_.clear();
  server_.reset();
  tick_.stop();
  response_timer_.stop();
}

// ---- sources

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
  if (inbox_ == nullptr) return;
  watch(add_source(name), std::make_shared<WatchedLoop>(inbox_, std::string(name), loop));
}

void InspectorCore::add(std::string_view name, Workers& workers) {
  if (inbox_ == nullptr) return;
  Source& source = add_source(name);
  for (unsigned i = 0; i < workers.count(); ++i) {
    std::string worker = std::string(name) + '/' + std::to_string(i);
    watch(source, std::make_shared<WatchedLoop>(inbox_, std::move(worker), workers, i));
  }
}

void InspectorCore::add(std::string_view name, std::string_view family, OnRead read) {
  if (inbox_ == nullptr) return;
  Source& source = add_source(name);
  source.family = family;
  source.read = std::move(read);
}

// Does not wait for a loop whose report is outstanding.
void InspectorCore::remove(std::string_view name) {
  SPATE_ASSERT(!is_reading_, kInOnRead);
  const auto source = std::ranges::find(sources_, name, &Source::name);
  if (source == sources_.end()) return;
  for (const auto& loop : source->loops) {
    if (is_measuring()) measure(*loop, false);
    if (is_asking_ && loop->round == round_ && loop->is_queried()) --awaited_;
    loop->round = 0;
  }
  sources_.erase(source);
  if (is_asking_ && awaited_ == 0) response_timer_.start(Nanos{0});
}

void InspectorCore::measure(WatchedLoop& loop, bool on) {
  &loop.loop() == &loop_ ? loop.measure(on) : loop.post_measuring(on);
}

// ---- viewers

Result<Address> InspectorCore::listen(const Address& address) {
  if (inbox_ == nullptr) return std::unexpected(system_error(ECANCELED));
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

// Protects against DNS rebinding: a foreign page whose name resolves to this host sends its own
// name. A program that sends no Host is not a browser.
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
  if (name == "state.json") return respond_later(std::move(exchange), Form::json);
  if (name == "metrics") {
    const Form form = metrics_form(request[FieldId::accept]);
    return respond_later(std::move(exchange), form);
  }
  if (name == "events") return open_events(std::move(exchange));
  exchange.respond(Status::not_found);
}

void InspectorCore::show_page(Exchange exchange) {
  respond_safely(exchange, "text/html; charset=utf-8", kInspectorPage, kInspectorPagePolicy);
}

void InspectorCore::respond_later(Exchange exchange, Form form) {
  if (inbox_ == nullptr || waiting_.size() >= kMostWaiting) {
    exchange.respond(Status::service_unavailable);
    return;
  }
  waiting_.push_back({std::move(exchange), form});
  begin_round();
}

void InspectorCore::open_events(Exchange exchange) {
  drop_closed_viewers();
  if (inbox_ == nullptr || viewers_.size() >= options_.max_viewers) {
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
  // Begins when the header section of the event stream was sent.
  tick_.start(Nanos{0}, options_.period);
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

// A viewer that has not read its last event gets no new one.
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
  if (awaited_ == 0 || !response_timer_.start(options_.response_timeout)) end_round();
}

void InspectorCore::ask(WatchedLoop& loop) {
  if (&loop.loop() == &loop_) {
    loop.report = loop.make_report(is_measuring(), options_.max_streams);
    return;
  }
  if (loop.is_queried()) return;
  loop.round = round_;
  loop.queried_at = loop_.now();
  ++awaited_;
  loop.ask(is_measuring(), options_.max_streams);
}

void InspectorCore::on_report(WatchedLoop& loop, std::optional<LoopReport> report) {
  loop.end_query();
  loop.has_ended = !report;
  if (report) loop.report = std::move(report);
  if (is_asking_ && loop.round == round_ && --awaited_ == 0) end_round();
}

// Formats all responses first, then sends them: an access log may destroy this.
void InspectorCore::end_round() {
  response_timer_.stop();
  is_asking_ = false;
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  const State now = state();
  std::array<std::string, kForms> texts;
  for (std::size_t i = 0; i < kForms; ++i) {
    const auto form = static_cast<Form>(i);
    if (has_form(waiting, form) || (form == Form::json && has_reader()))
      texts[i] = text_of(now, form);
  }
  for (EventStream& viewer : viewers_) {
    if (viewer.queued() == 0) viewer.send(texts[static_cast<std::size_t>(Form::json)]);
  }
  respond(waiting, texts);
}

// Prometheus asks for OpenMetrics by Accept; anything else gets the older format.
InspectorCore::Form InspectorCore::metrics_form(std::string_view accept) {
  constexpr std::string_view kOffered[] = {"text/plain;version=0.0.4",
                                           "application/openmetrics-text;version=1.0.0"};
  return choose_type(accept, kOffered) == 1 ? Form::openmetrics : Form::prometheus;
}

std::string InspectorCore::text_of(const State& state, Form form) {
  switch (form) {
    case Form::json:
      return json_of(state);
    case Form::prometheus:
      return prometheus_text_of(state);
    case Form::openmetrics:
      return openmetrics_text_of(state);
  }
  return {};
}

bool InspectorCore::has_form(const std::vector<Waiting>& waiting, Form form) {
  return std::ranges::find(waiting, form, &Waiting::form) != waiting.end();
}

void InspectorCore::respond(std::span<Waiting> waiting,
                            std::span<const std::string, kForms> texts) {
  constexpr std::string_view kTypes[kForms] = {"application/json", kPrometheusType,
                                               kOpenMetricsType};
  for (Waiting& each : waiting) {
    const auto form = static_cast<std::size_t>(each.form);
    respond_safely(each.exchange, kTypes[form], texts[form]);
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
                  .status = loop.has_ended ? LoopStatus::ended : LoopStatus::responsive,
                  .report = loop.report ? &*loop.report : nullptr,
                  .silent = loop.is_queried() ? loop_.now() - loop.queried_at : Nanos{0},
                  .running = {}};
  if (!loop.is_queried() || state.silent < options_.response_timeout) return state;
  state.status = LoopStatus::blocked;
  state.running = loop.loop().running_callback();
  return state;
}

}  // namespace spate::http
