// Shared by the tests of resolve(): a loop whose name server is a test's.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/net/resolver.h"
#include "streams/harness.h"
#include "tests/support/name_server.h"

namespace spate::testing {

class ResolvingTest : public ::testing::Test {
 protected:
  ResolvingTest() {
    EXPECT_FALSE(configure_resolver(loop_, with_servers({server_.address()})));
    server_.names["both.test"] = {.ipv6 = {"2001:db8::1"}, .ipv4 = {"192.0.2.1", "192.0.2.2"}};
    server_.names["six.test"] = {.ipv6 = {"2001:db8::6"}};
    server_.names["silent.test"] = {.is_silent = true};
    server_.names["slow.test"] = {.ipv4 = {"192.0.2.9"},
                                  .ipv6_delay = std::chrono::milliseconds(20),
                                  .ipv4_delay = std::chrono::milliseconds(40)};
  }

  // Enough time for an answer on any machine.
  static ResolverOptions with_servers(std::vector<Address> servers) {
    return {.servers = std::move(servers),
            .resolv_conf = "/dev/null",
            .hosts = "/dev/null",
            .timeout = std::chrono::minutes(1)};
  }
  static ResolverOptions impatient(std::vector<Address> servers, int tries) {
    ResolverOptions options = with_servers(std::move(servers));
    options.timeout = std::chrono::milliseconds(10);
    options.tries = tries;
    return options;
  }

  OnResolved note() {
    return [this](Result<std::vector<Address>> result) {
      ++results_;
      addresses_.clear();
      error_ = result ? std::error_code() : result.error();
      if (!result) return;
      for (const Address& address : *result) addresses_.push_back(address.to_string());
    };
  }
  Resolving ask(std::string_view host, const ResolveOptions& options = {}) {
    const int before = results_;
    Resolving resolving = resolve(loop_, host, 80, note(), options);
    EXPECT_EQ(results_, before);  // Never from inside the call.
    return resolving;
  }
  // Appends the final result to `log`.
  Resolving each(std::string_view host, OnAddresses on_addresses, std::string& log,
                 const ResolveOptions& options = {}) {
    const auto done = [&log](std::error_code error) {
      log += !error                             ? "done"
             : error == NameError::timeout      ? "timeout"
             : error == NameError::no_such_host ? "no_such_host"
             : error == NameError::bad_name     ? "bad_name"
                                                : error.message();
    };
    return resolve_each(loop_, host, 80, std::move(on_addresses), done, options);
  }
  // Returns the addresses of a name, or the error.
  std::vector<std::string> addresses_of(std::string_view host, const ResolveOptions& options = {}) {
    const int before = results_;
    const Resolving resolving = ask(host, options);
    run_until(loop_, [&] { return results_ > before; });
    return addresses_;
  }
  std::error_code error_of(std::string_view host, const ResolveOptions& options = {}) {
    EXPECT_TRUE(addresses_of(host, options).empty());
    return error_;
  }
  void turn(int times = 5) {
    for (int i = 0; i < times; ++i) loop_.run(Run::no_wait);
  }

  // Runs until no more is active than before: the server may still delay an answer.
  void become_quiet(std::int64_t active) {
    while (loop_.active_count() > active) loop_.run(Run::once);
    EXPECT_EQ(loop_.active_count(), active);
  }

  using Texts = std::vector<std::string>;

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  NameServer server_{loop_};
  int results_ = 0;
  Texts addresses_;
  std::error_code error_;
};

}  // namespace spate::testing
