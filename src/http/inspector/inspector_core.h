// InspectorCore: the state behind an Inspector: its sources, its viewers, and the rounds in which
// all loops are queried.
//
// A round begins with a request, and ends when all queried loops have responded, or after
// InspectorOptions::response_timeout. Then all requests that arrived meanwhile get a response. A
// loop that has not responded since an earlier round is not queried again, and not waited for.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/inspector/state.h"
#include "http/inspector/watched_loop.h"
#include "spate/hooks.h"
#include "spate/http/events.h"
#include "spate/http/inspector.h"
#include "spate/http/server.h"
#include "spate/timer.h"

namespace spate::http {

class InspectorCore final : private ReportReceiver {
 public:
  static Result<std::unique_ptr<InspectorCore>> create(Loop& loop, InspectorOptions options);
  InspectorCore(const InspectorCore&) = delete;
  InspectorCore& operator=(const InspectorCore&) = delete;
  ~InspectorCore();

  // ---- the functions of Inspector

  void add(std::string_view name, Loop& loop);
  void add(std::string_view name, Workers& workers);
  void add(std::string_view name, std::string_view family, OnRead read);
  void remove(std::string_view name);
  Result<Address> listen(const Address& address);
  void serve(Exchange exchange);
  std::size_t viewers() const { return viewers_.size(); }

 private:
  static constexpr std::size_t kMostConnections = 64;
  static constexpr std::size_t kMostWaiting = 64;  // Requests for "/state.json" and the like.

  enum class Form : std::uint8_t { json, prometheus, openmetrics };
  static constexpr std::size_t kForms = 3;
  struct Waiting {
    Exchange exchange;
    Form form;
  };
  struct Source {
    std::string name;
    std::string_view family;
    std::vector<std::shared_ptr<WatchedLoop>> loops;
    OnRead read;
  };

  InspectorCore(Loop& loop, InspectorOptions options);

  Source& add_source(std::string_view name);
  void watch(Source& source, std::shared_ptr<WatchedLoop> loop);
  void measure(WatchedLoop& loop, bool on);
  bool is_measuring() const { return options_.measure == Measure::always || !viewers_.empty(); }

  void serve_own(Exchange exchange);
  bool is_for_this_host(std::string_view host) const;
  void show_page(Exchange exchange);
  void respond_later(Exchange exchange, Form form);
  void open_events(Exchange exchange);

  void begin_round();
  void ask(WatchedLoop& loop);
  void on_report(WatchedLoop& loop, std::optional<LoopReport> report) override;
  void end_round();
  static Form metrics_form(std::string_view accept);
  static bool has_form(const std::vector<Waiting>& waiting, Form form);
  static std::string text_of(const State& state, Form form);
  static void respond(std::span<Waiting> waiting, std::span<const std::string, kForms> texts);
  State state();
  LoopState state_of(const Source& source, const WatchedLoop& loop) const;

  void on_tick();
  bool has_reader() const;
  void drop_closed_viewers();
  void end();

  Loop& loop_;
  const InspectorOptions options_;
  std::shared_ptr<ReportInbox> inbox_;
  std::vector<Source> sources_;
  std::vector<Waiting> waiting_;
  std::list<EventStream> viewers_;
  std::optional<Server> server_;

  std::uint64_t round_ = 0;
  std::size_t awaited_ = 0;  // Outstanding reports of this round.
  bool is_asking_ = false;
  bool is_reading_ = false;  // An OnRead is running.
  Timer tick_;               // Active while there are viewers.
  Timer response_timer_;           // Active while loops are being queried.
  Cleanup loop_ends_;
};

}  // namespace spate::http
