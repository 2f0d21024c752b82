#include "offload/file_source.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/result.h"
#include "sys/page_cache.h"

namespace spate {

std::unique_ptr<FileSource> FileSource::make(int file, ThreadPool& pool) {
  std::shared_ptr<sys::Descriptor> shared = std::make_shared<sys::Descriptor>();
  std::unique_ptr<FileSource> made(new (std::nothrow) FileSource(shared, pool));
  if (made != nullptr) *shared = sys::Descriptor(file);
  return made;
}

long FileSource::take_loaded() { return std::exchange(loaded_, 0); }

long FileSource::read(Loop& loop, std::span<std::byte> room, std::int64_t offset, Job done) {
  if (is_waiting_) return -EAGAIN;
  if (const long loaded = take_loaded(); loaded != 0) {
    const auto most = static_cast<std::size_t>(std::max(loaded, 0L));
    return loaded < 0 ? loaded
                      : sys::read_at(fd(), room.data(), std::min(room.size(), most), offset);
  }
  const long count = sys::read_at_once(fd(), room.data(), room.size(), offset);
  return count == -EAGAIN ? load(loop, room.size(), offset, std::move(done)) : count;
}

// Errors, and a file that is too short, are reported by the call that reads.
long FileSource::prepare(Loop& loop, std::size_t size, std::int64_t offset, Job done) {
  if (is_waiting_) return -EAGAIN;
  if (const long loaded = take_loaded(); loaded != 0)
    return std::min(loaded, static_cast<long>(size));
  if (sys::find_in_memory(fd(), size, offset) != -EAGAIN) return static_cast<long>(size);
  return load(loop, size, offset, std::move(done));
}

long FileSource::load(Loop& loop, std::size_t size, std::int64_t offset, Job done) {
  forked_.emplace(loop, bind<&FileSource::on_fork>(this));
  if (!forked_->start()) return -ENOMEM;
  auto job = offload(
      loop,
      [file = file_, size, offset] { return sys::bring_into_memory(file->get(), size, offset); },
      [this, size](long result) {
        on_loaded(result == 0 || result == -ENODATA ? static_cast<long>(size) : result);
      },
      pool_);
  if (!job) return forked_.reset(), result_of(job.error());
  job_ = *std::move(job);
  done_ = std::move(done);
  is_waiting_ = true;
  return -EAGAIN;
}

void FileSource::on_loaded(long loaded) {
  forked_.reset();
  job_.cancel();
  is_waiting_ = false;
  loaded_ = loaded;
  Job done = std::move(done_);
  done();
}

}  // namespace spate
