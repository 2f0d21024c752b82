// Go's net/http: its ServeMux, a handler for a path, on one processor. The file is copied by
// io.CopyN, which is sendfile(2) there.
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

// What nobody refers to is closed.
var kept *os.File

// Its name, for as long as the process lives.
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

// SIGUSR1 and SIGTERM, as bench/harness/README.md has them. What Go's allocator has given out is
// for the most part garbage, and is not told.
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
