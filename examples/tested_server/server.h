// A lock server. The response to "lock NAME" is "yours" or "taken", to "unlock NAME" "free". A
// client that is silent for half a minute, or disconnects, loses its locks.
//
// This code is the same in production, in a test and in a World.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "spate/net/framing.h"
#include "spate/net/server.h"

class Holder;
using Locks = std::map<std::string, Holder*, std::less<>>;

inline constexpr std::chrono::seconds kLongestSilence{30};

// A connected client.
class Holder : public spate::Session {
 public:
  explicit Holder(Locks& locks) : locks_(locks) {}

  void on_open() override { stream().set_idle_timeout(kLongestSilence); }
  std::size_t on_data(spate::Bytes bytes) override {
    const spate::Split lines = split(bytes, spate::Delimiter{.max = 100}, [&](spate::Bytes line) {
      stream().write(answer(spate::text_of(line)));
    });
    if (lines.broken) stream().close();
    return lines.used;
  }
  void on_closed(std::error_code) override {
    std::erase_if(locks_, [this](const auto& lock) { return lock.second == this; });
  }

 private:
  std::string_view answer(std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string name(line.substr(space));
    if (line.starts_with("lock ")) return lock(name);
    if (line.starts_with("unlock ")) return unlock(name);
    return "what?\n";
  }
  std::string_view lock(const std::string& name) {
    const auto [held, is_new] = locks_.try_emplace(name, this);
    return held->second == this ? "yours\n" : "taken\n";
  }
  std::string_view unlock(const std::string& name) {
    const auto held = locks_.find(name);
    if (held != locks_.end() && held->second == this) locks_.erase(held);
    return "free\n";
  }

  Locks& locks_;
};

class LockServer {
 public:
  LockServer(spate::Loop& loop, const spate::Address& address)
      : server_(must(spate::serve<Holder>(loop, address, std::ref(locks_)))) {}
  LockServer(const LockServer&) = delete;
  LockServer& operator=(const LockServer&) = delete;

  spate::Address address() const { return server_.address(); }
  void drain(spate::Nanos grace) { server_.drain(grace); }

 private:
  Locks locks_;
  spate::Server<Holder> server_;
};
