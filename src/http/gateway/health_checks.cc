#include "http/gateway/health_checks.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/mix.h"
#include "http/codec/characters.h"
#include "http/codec/system_error.h"
#include "spate/http/call.h"
#include "spate/http/error.h"
#include "spate/http/response.h"
#include "spate/http/url.h"
#include "sys/random.h"

namespace spate::http {

namespace {

// Longer bodies are cut off: checks should be cheap, also of a path that is a whole page.
constexpr std::size_t kMostBody = 64 * 1024;

bool is_host(const std::string& text) {
  const Result<Url> url = Url::parse("http://" + text);
  return url && url->target() == "/" && !url->has_fragment() && !text.ends_with('/');
}

bool is_valid(const StatusRange& range) {
  return range.first >= 200 && range.first <= range.last && range.last <= 599;
}

// Makes a function that calls `open`, which two Clients share.
OpenStream shared(const std::shared_ptr<OpenStream>& open) {
  return [open](std::string_view host, std::uint16_t port) { return (*open)(host, port); };
}

}  // namespace

bool is_valid(const HealthCheck& options) {
  const Method method = options.method;
  return (method == Method::get || method == Method::head || method == Method::options) &&
         options.path.starts_with('/') && consists_of(options.path, kVisible) &&
         (options.host.empty() || is_host(options.host)) && options.timeout > Nanos{0} &&
         options.interval >= options.timeout && options.interval < kForever / 2 &&
         options.fall > 0 && options.rise > 0 && !options.healthy.empty() &&
         std::ranges::all_of(options.healthy,
                             [](const StatusRange& range) { return is_valid(range); });
}

Result<ClientOptions> health_check_client(ClientOptions& options) {
  ClientOptions made;
  made.max_connections = options.max_connections;
  made.idle_timeout = Nanos{0};
  made.max_head = options.max_head;
  made.connect = options.connect;
  made.proxies = options.proxies;
  made.tls = options.tls;
  made.http2 = options.http2;
  made.http2_without_tls = options.http2_without_tls;
  made.user_agent = options.user_agent;
  if (!made.fields.add_all(options.fields)) return std::unexpected(system_error(ENOMEM));
  if (options.open) {
    const auto open = std::make_shared<OpenStream>(std::move(options.open));
    options.open = shared(open);
    made.open = shared(open);
  }
  return made;
}

// The checks of one upstream, one after another.
class HealthChecks::Check final : public CallHandler {
 public:
  Check(HealthChecks& checks, Backend& backend) : checks_(checks), backend_(backend) {}
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  // Has no effect when memory runs out: such a check has no result.
  void begin() {
    const HealthCheck& how = checks_.options_;
    CallOptions options;
    options.method = how.method;
    options.target = how.path;
    options.deadline = how.timeout;
    options.proxy_header = checks_.proxy_header_;
    if (!how.host.empty() && !options.fields.set(FieldId::host, how.host)) return;
    status_.reset();
    received_ = 0;
    call_ = checks_.client_.send(backend_.url, *this, std::move(options));
    checks_.in_progress_ += call_.is_open();
  }

  void on_response(const Response& response) override { status_ = response.status(); }
  void on_body(Bytes bytes) override {
    received_ += bytes.size();
    if (received_ > kMostBody) end({});
  }
  void on_closed(std::error_code error) override { end(error); }

 private:
  void end(std::error_code error) {
    call_.cancel();
    --checks_.in_progress_;
    if (error || checks_.is_healthy(*status_)) return checks_.pool_.note_check(backend_, error, {});
    checks_.pool_.note_check(backend_, HttpError::unhealthy_status, status_);
  }

  HealthChecks& checks_;
  Backend& backend_;
  Call call_;
  std::optional<Status> status_;
  std::size_t received_ = 0;
};

HealthChecks::HealthChecks(Loop& loop, UpstreamPool& pool, Client client, HealthCheck options,
                           std::string proxy_header)
    : pool_(pool),
      client_(std::move(client)),
      options_(std::move(options)),
      proxy_header_(std::move(proxy_header)),
      random_(sys::random_seed()),
      timer_(loop, [this] { check_all(); }),
      end_of_loop_(loop, [this] { timer_.stop(); }) {}

HealthChecks::~HealthChecks() = default;

Result<std::unique_ptr<HealthChecks>> HealthChecks::make(Loop& loop, UpstreamPool& pool,
                                                         ClientOptions client_options,
                                                         HealthCheck options,
                                                         std::string proxy_header) {
  Result<Client> client = Client::create(loop, std::move(client_options));
  if (!client) return std::unexpected(client.error());
  std::unique_ptr<HealthChecks> made(new (std::nothrow) HealthChecks(
      loop, pool, std::move(*client), std::move(options), std::move(proxy_header)));
  if (made == nullptr || !made->start()) return std::unexpected(system_error(ENOMEM));
  return made;
}

bool HealthChecks::start() {
  for (Backend& each : pool_.backends()) checks_.push_back(std::make_unique<Check>(*this, each));
  return end_of_loop_.start() && timer_.start(Nanos{0}, options_.interval);
}

// No check begins while another is in progress. Between them nothing of this keeps the loop alive,
// so the checks keep it alive for no longer than a timeout.
void HealthChecks::check_all() {
  if (in_progress_ > 0) return;
  for (const auto& each : checks_) each->begin();
  const double tenth = static_cast<double>(options_.interval.count()) / 10;
  timer_.postpone(options_.interval + Nanos{static_cast<std::int64_t>(tenth * share(random_++))});
}

bool HealthChecks::is_healthy(Status status) const {
  return std::ranges::any_of(options_.healthy, [status](const StatusRange& range) {
    return range.first <= code_of(status) && code_of(status) <= range.last;
  });
}

}  // namespace spate::http
