// FileWriter, implemented with a Replacement that one operation at a time writes to.
#include "spate/file_writer.h"

#include <cerrno>
#include <utility>

#include "file/file_call.h"
#include "file/file_work.h"
#include "spate/assert.h"
#include "sys/descriptor.h"

namespace spate {

class FileWriting {
 public:
  FileWriting(Loop& loop, std::string path, Function<void()> on_progress,
              const WriteFileOptions& options)
      : loop_(loop),
        options_(options),
        on_progress_(std::make_shared<Function<void()>>(std::move(on_progress))),
        file_(std::make_shared<file_work::Replacement>(std::move(path), options)) {}
  FileWriting(const FileWriting&) = delete;
  FileWriting& operator=(const FileWriting&) = delete;

  bool is_full() const { return waiting_.size() + writing_ >= FileWriter::kFull; }
  std::error_code error() const { return error_; }
  std::uint64_t size() const { return size_; }

  void write(Bytes bytes) {
    SPATE_ASSERT(!done_, "no write() after finish()");
    size_ += bytes.size();
    if (error_ || bytes.empty()) return;
    if (!waiting_.append(bytes)) has_memory_ = false;
    if (!is_writing_) start();
  }
  void finish(OnFileDone done) {
    done_ = std::move(done);
    if (!is_writing_) start();
  }

 private:
  // Passes all bytes that wait to the pool.
  void start();
  void on_written(std::error_code error, bool is_finished);

  Loop& loop_;
  const WriteFileOptions options_;
  std::shared_ptr<Function<void()>> on_progress_;
  // Shared with the running operation, which may outlive this.
  std::shared_ptr<file_work::Replacement> file_;
  Buffer waiting_;
  std::size_t writing_ = 0;  // Bytes of the running operation.
  std::uint64_t size_ = 0;
  std::error_code error_;
  OnFileDone done_;
  bool is_writing_ = false;
  bool has_memory_ = true;
  FileOperation operation_;
};

void FileWriting::start() {
  is_writing_ = true;
  writing_ = waiting_.size();
  const bool is_last = done_ != nullptr;
  const std::error_code failure = error_        ? error_
                                  : has_memory_ ? std::error_code()
                                                : sys::error_code(-ENOMEM);
  operation_ = start_file_call<std::error_code>(
      loop_, options_,
      [file = file_, bytes = std::exchange(waiting_, Buffer()), failure,
       is_last](const Cancelled& is_cancelled) {
        if (failure) return failure;
        const std::error_code error = file->write(bytes, is_cancelled);
        return error || !is_last ? error : file->finish(is_cancelled);
      },
      [this, is_last](std::error_code error) { on_written(error, is_last); });
}

void FileWriting::on_written(std::error_code error, bool is_finished) {
  const bool was_full = is_full();
  is_writing_ = false;
  writing_ = 0;
  if (error) {
    error_ = error;
    waiting_.clear();
    file_.reset();  // Removes the temporary file.
  }
  if (is_finished || (error && done_ != nullptr)) {
    OnFileDone done = std::move(done_);
    return done(error);
  }
  if (!error && (!waiting_.empty() || done_ != nullptr)) start();
  const auto on_progress = on_progress_;  // The callback may destroy this.
  if (error || (was_full && !is_full())) (*on_progress)();
}

void FileWritingEnd::operator()(FileWriting* writing) const { delete writing; }

FileWriter::FileWriter(Loop& loop, std::string path, Function<void()> on_progress,
                       const WriteFileOptions& options)
    : writing_(new FileWriting(loop, std::move(path), std::move(on_progress), options)) {}

void FileWriter::write(Bytes bytes) { writing_->write(bytes); }
bool FileWriter::is_full() const { return writing_->is_full(); }
std::error_code FileWriter::error() const { return writing_->error(); }
std::uint64_t FileWriter::size() const { return writing_->size(); }
void FileWriter::finish(OnFileDone done) { writing_->finish(std::move(done)); }

}  // namespace spate
