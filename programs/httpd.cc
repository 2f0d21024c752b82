// spate-httpd: serves the files beneath a directory. kUsage is its manual.
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "spate/http/access_log.h"
#include "spate/http/files.h"
#include "spate/http/inspector.h"
#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/signal.h"
#include "spate/version.h"

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kUsage =
    "usage: spate-httpd DIR [options]\n"
    "Serves the files beneath DIR by HTTP, until SIGINT or SIGTERM.\n"
    "\n"
    "  --port [HOST:]PORT   where to listen; 8080 on all addresses if it is not given, 0 for any\n"
    "  --listing            lists directories that have no index.html\n"
    "  --hidden             serves names that begin with a dot, too\n"
    "  --workers N          threads; one per processor if it is not given\n"
    "  --cache MIB          memory for small files in each thread; 16 if it is not given\n"
    "  --log                prints a line for each request, in the combined log format\n"
    "  --inspect [HOST:]PORT  shows what it does to browsers of this host\n"
    "  --version            prints the version of spate\n"
    "  --help               prints this\n"
    "\n"
    "Beside a file, \"name.br\" and \"name.gz\" are sent to clients that accept them.\n";

struct Settings {
  std::string directory;
  std::string port = "8080";
  unsigned workers = 0;
  bool log = false;
  std::string inspect;
  spate::http::FilesOptions files{.precompressed = true};
};

// Ends the program: 2 is for what was called wrongly.
[[noreturn]] void fail(int code, const std::string& what) {
  std::fprintf(stderr, "spate-httpd: %s\n", what.c_str());
  std::exit(code);
}

[[noreturn]] void misuse(const std::string& what) { fail(2, what + "; see spate-httpd --help"); }

unsigned parse_count(const std::string& option, const std::string& text, unsigned least,
                     unsigned most) {
  unsigned count = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, count);
  if (parsed.ec != std::errc() || parsed.ptr != end || count < least || count > most)
    misuse(option + " needs a number from " + std::to_string(least) + " to " +
           std::to_string(most) + ", not \"" + text + "\"");
  return count;
}

class Arguments {
 public:
  Arguments(int count, char** texts) : count_(count), texts_(texts) {}

  bool next(std::string& text) {
    if (at_ == count_) return false;
    text = texts_[at_++];
    return true;
  }
  std::string value_of(const std::string& option) {
    std::string value;
    if (!next(value)) misuse(option + " needs a value");
    return value;
  }

 private:
  int count_;
  char** texts_;
  int at_ = 1;
};

void take_option(Settings& settings, const std::string& option, Arguments& arguments) {
  if (option == "--port") {
    settings.port = arguments.value_of(option);
  } else if (option == "--workers") {
    settings.workers = parse_count(option, arguments.value_of(option), 1, 1024);
  } else if (option == "--cache") {
    settings.files.cache_size = std::uint64_t{1024 * 1024} *
                                parse_count(option, arguments.value_of(option), 0, 1024 * 1024);
  } else if (option == "--listing") {
    settings.files.listing = true;
  } else if (option == "--hidden") {
    settings.files.hidden = true;
  } else if (option == "--inspect") {
    settings.inspect = arguments.value_of(option);
  } else if (option == "--log") {
    settings.log = true;
  } else {
    misuse("there is no option " + option);
  }
}

Settings parse(Arguments arguments) {
  Settings settings;
  for (std::string text; arguments.next(text);) {
    if (text == "--help") {
      std::fputs(kUsage.data(), stdout);
      std::exit(0);
    }
    if (text == "--version") {
      std::printf("spate-httpd %s\n", spate::version().data());
      std::exit(0);
    }
    if (text.starts_with("-")) {
      take_option(settings, text, arguments);
    } else if (settings.directory.empty()) {
      settings.directory = text;
    } else {
      misuse("one directory at a time, not \"" + text + "\" as well");
    }
  }
  if (settings.directory.empty()) misuse("which directory is to be served?");
  return settings;
}

std::string reason(const std::string& what, std::error_code error) {
  return what + ": " + error.message();
}

spate::http::AccessLog open_log(const Settings& settings) {
  if (!settings.log) return {};
  auto log = spate::http::AccessLog::to_descriptor(STDOUT_FILENO);
  if (log) return std::move(*log);
  if (log.error() != std::errc::bad_file_descriptor) fail(1, reason("cannot log", log.error()));
  return {};  // There is no standard output.
}

spate::http::MakeService make_files(const Settings& settings) {
  return [directory = settings.directory,
          options = settings.files](spate::Loop&) -> std::unique_ptr<spate::http::Service> {
    auto files = spate::http::Files::open(directory, options);
    if (!files) return nullptr;
    return std::make_unique<spate::http::Files>(std::move(*files));
  };
}

void serve(const Settings& settings, const spate::Address& address, spate::Workers& workers,
           const spate::http::AccessLog& log) {
  spate::http::ServerOptions options;
  options.compression = spate::http::Compression::by_type;  // Of listings.
  if (settings.log) options.log = log.writer();
  const auto bound = spate::http::serve(workers, address, make_files(settings), options);
  if (!bound) {
    const char* advice =
        bound.error() == std::errc::address_in_use          ? "; choose another --port"
        : bound.error() == std::errc::permission_denied     ? "; below 1024 a port is root's"
        : bound.error() == std::errc::address_not_available ? "; is this host's the address?"
                                                            : "";
    fail(1, reason("cannot listen on " + address.to_string(), bound.error()) + advice);
  }
  std::printf("serving %s at http://%s\n", settings.directory.c_str(),
              bound->address().to_string().c_str());
  std::fflush(stdout);
}

// A port alone is one that others cannot reach.
spate::Address inspected_at(const std::string& text) {
  const bool is_port = text.find_first_not_of("0123456789") == std::string::npos;
  const auto address = spate::Address::parse(is_port ? "127.0.0.1:" + text : text);
  if (!address) misuse("--inspect needs [HOST:]PORT, not \"" + text + "\"");
  return *address;
}

void inspect(const Settings& settings, spate::http::Inspector& inspector) {
  const auto bound = inspector.listen(inspected_at(settings.inspect));
  if (!bound) {
    const char* advice = bound.error() == std::errc::operation_not_permitted
                             ? "; only addresses of this host alone, as 127.0.0.1"
                             : "";
    fail(1, reason("cannot listen on " + settings.inspect, bound.error()) + advice);
  }
  std::printf("inspector at http://%s\n", bound->to_string().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(Arguments(argc, argv));
  const auto address = spate::Address::parse_listen(settings.port);
  if (!address) misuse("--port needs [HOST:]PORT, not \"" + settings.port + "\"");
  const auto files = spate::http::Files::open(settings.directory);
  if (!files) fail(1, reason("cannot serve " + settings.directory, files.error()));
  const auto log = open_log(settings);
  auto workers = spate::Workers::create({.threads = settings.workers});
  if (!workers) fail(1, reason("cannot start threads", workers.error()));
  auto loop = spate::must(spate::Loop::create());
  const auto stop = [&loop](spate::Signal&) { loop->stop(); };
  spate::Signal interrupted(*loop, stop);
  spate::Signal terminated(*loop, stop);
  spate::must(interrupted.start(SIGINT));
  spate::must(terminated.start(SIGTERM));
  serve(settings, *address, **workers, log);
  auto inspector = spate::must(spate::http::Inspector::create(*loop));
  inspector.add("workers", **workers);
  inspector.add("main", *loop);
  if (!settings.inspect.empty()) inspect(settings, inspector);
  loop->run();
  return (*workers)->stop(5s) ? 0 : 1;
}
