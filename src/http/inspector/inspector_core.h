// InspectorCore: what an Inspector is the handle of: what was added, who looks, and the rounds in
// which all loops are asked.
//
// A round begins when somebody looks, and is over when all that were asked have answered, or after
// InspectorOptions::patience. Then all who have looked meanwhile are answered. A loop that owes an
// answer of an earlier round is not asked again, and not waited for.
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

class InspectorCore final : private Asking {
 public:
  static Result<std::unique_ptr<InspectorCore>> create(Loop& loop, InspectorOptions options);
  InspectorCore(const InspectorCore&) = delete;
  InspectorCore& operator=(const InspectorCore&) = delete;
  ~InspectorCore();

  // ---- what Inspector's functions of the same name do

  void add(std::string_view name, Loop& loop);
  void add(std::string_view name, Workers& workers);
  void add(std::string_view name, std::string_view family, OnRead read);
  void remove(std::string_view name);
  Result<Address> listen(const Address& address);
  void serve(Exchange exchange);
  std::size_t viewers() const { return viewers_.size(); }

 private:
  static constexpr std::size_t kMostConnections = 64;
  static constexpr std::size_t kMostWaiting = 64;  // For the answers to "/state.json" and the like.

  enum class Form : std::uint8_t { json, prometheus };
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
  void answer_later(Exchange exchange, Form form);
  void open_events(Exchange exchange);

  void begin_round();
  void ask(WatchedLoop& loop);
  void on_answer(WatchedLoop& loop, std::optional<LoopReport> report) override;
  void end_round();
  static bool has_form(const std::vector<Waiting>& waiting, Form form);
  static void answer(std::span<Waiting> waiting, std::string_view json, std::string_view text);
  State state();
  LoopState state_of(const Source& source, const WatchedLoop& loop) const;

  void on_tick();
  bool has_reader() const;
  void drop_closed_viewers();
  void end();

  Loop& loop_;
  const InspectorOptions options_;
  std::shared_ptr<Desk> desk_;
  std::vector<Source> sources_;
  std::vector<Waiting> waiting_;
  std::list<EventStream> viewers_;
  std::optional<Server> server_;

  std::uint64_t round_ = 0;
  std::size_t awaited_ = 0;  // Answers of this round.
  bool is_asking_ = false;
  bool is_reading_ = false;  // An OnRead is running.
  Timer tick_;               // While there are viewers.
  Timer patience_;           // While loops are asked.
  Cleanup loop_ends_;
};

}  // namespace spate::http
