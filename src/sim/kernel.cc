#include "sim/kernel.h"

#include <algorithm>

#include "sim/socket.h"
#include "sim/tcp.h"
#include "spate/assert.h"

namespace spate::sim {

namespace {

constexpr std::size_t kMaxDescriptors = 1u << 20;

thread_local Kernel* here = nullptr;

}  // namespace

Kernel::Kernel(std::uint64_t seed, Surroundings& surroundings)
    : seed_(seed), surroundings_(surroundings), now_(kBeginning) {
  SPATE_ASSERT(here == nullptr);
  here = this;
}

Kernel::~Kernel() { here = nullptr; }

void Kernel::close_all() {
  for (Descriptor& one : files_) one.file = nullptr;
  local_names.drop_all();
  open_counts_.clear();
}

void Kernel::note_local(std::string_view bytes) {
  note({.kind = EventKind::local, .from = host, .print = print_of(bytes), .size = bytes.size()});
}

Kernel* Kernel::current() { return here; }

void Kernel::at(Nanos time, Happening happening) {
  happenings_.emplace(std::pair{std::max(time, now_), ++happening_count_}, std::move(happening));
}

bool Kernel::happen() {
  const std::pair<Nanos, std::uint64_t> end{now_, happening_count_};
  bool any = false;
  while (!happenings_.empty() && happenings_.begin()->first <= end) {
    auto first = happenings_.extract(happenings_.begin());
    first.mapped()();
    any = true;
  }
  return any;
}

// ---- descriptors

long Kernel::may_open() const {
  const auto limit = limits_.find(host);
  if (limit == limits_.end()) return 0;
  return open_count(host) < limit->second.count ? 0 : -limit->second.error;
}

int Kernel::open(std::shared_ptr<File> file) {
  if (const long result = may_open(); result < 0) return static_cast<int>(result);
  const auto free = std::ranges::find(files_, nullptr, &Descriptor::file);
  const auto number = static_cast<std::size_t>(free - files_.begin());
  if (number == kMaxDescriptors) return -EMFILE;
  if (free == files_.end()) files_.emplace_back();
  files_[number] = {std::move(file), host};
  ++open_counts_[host];
  return kFirstDescriptor + static_cast<int>(number);
}

std::shared_ptr<File> Kernel::find(int fd) const {
  const auto number = static_cast<std::size_t>(fd - kFirstDescriptor);
  return fd >= kFirstDescriptor && number < files_.size() ? files_[number].file : nullptr;
}

long Kernel::close(int fd) {
  const std::shared_ptr<File> closing = find(fd);
  if (closing == nullptr) return -EBADF;
  Descriptor& closed = files_[static_cast<std::size_t>(fd - kFirstDescriptor)];
  --open_counts_[closed.host];
  closed = {};
  return 0;
}

std::size_t Kernel::open_count() const {
  std::size_t count = 0;
  for (const auto& [of_host, open] : open_counts_)
    if (of_host != kCrashed) count += open;
  return count;
}

std::size_t Kernel::open_count(int of_host) const {
  const auto found = open_counts_.find(of_host);
  return found == open_counts_.end() ? 0 : found->second;
}

void Kernel::crash(int crashed, const std::function<void(Socket&)>& close) {
  for (Descriptor& one : files_) {
    if (one.file == nullptr || one.host != crashed) continue;
    --open_counts_[crashed];
    ++open_counts_[kCrashed];
    one.host = kCrashed;
    Socket* socket = one.file->as_socket();
    if (socket == nullptr) continue;
    close(*socket);
    one.file = std::make_shared<DeadFile>();
  }
}

}  // namespace spate::sim
