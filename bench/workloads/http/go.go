// Go's net/http: its ServeMux, a handler per path, on one processor. io.CopyN copies the file, with
// sendfile(2).
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const pageSize, fileSize = 20 * 1024, 1024 * 1024

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A file without a reference would be closed.
var kept *os.File

// Returns a name that is valid while the process runs.
func makeFile() string {
	var err error
	kept, err = os.CreateTemp("", "spate-bench-")
	check(err)
	check(os.Remove(kept.Name()))
	_, err = kept.WriteString(strings.Repeat("f", fileSize))
	check(err)
	return fmt.Sprintf("/proc/self/fd/%d", kept.Fd())
}

func begin(w http.ResponseWriter, size int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(size))
}

func answer(w http.ResponseWriter, body []byte) {
	begin(w, len(body))
	w.Write(body)
}

// Handles SIGUSR1 and SIGTERM as in bench/harness/README.md. The heap is not reported, since most of
// it is garbage.
func heedSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGTERM)
	for received := range signals {
		fmt.Println("tally 0 0 0 0 0 0")
		if received == syscall.SIGTERM {
			os.Exit(0)
		}
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	hello, page, name := []byte("Hello, World!"), []byte(strings.Repeat("p", pageSize)), makeFile()
	http.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { answer(w, hello) })
	http.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) { answer(w, page) })
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		file, err := os.Open(name)
		check(err)
		defer file.Close()
		begin(w, fileSize)
		io.CopyN(w, file, fileSize)
	})
	http.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		answer(w, []byte(strconv.FormatInt(size, 10)))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go heedSignals()
	fmt.Printf("{\"version\": %q, \"library\": \"\"}\n", runtime.Version())
	fmt.Printf("ready %d %d\n", os.Getpid(), listener.Addr().(*net.TCPAddr).Port)
	check(http.Serve(listener, nil))
}
