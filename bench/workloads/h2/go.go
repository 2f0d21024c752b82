// Go's net/http with HTTP/2 over plain TCP, a handler per path, on one processor.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const pageSize = 20 * 1024

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// Handles SIGUSR1 and SIGTERM as in bench/harness/README.md.
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
	hello, page := []byte("Hello, World!"), []byte(strings.Repeat("p", pageSize))
	http.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { answer(w, hello) })
	http.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) { answer(w, page) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go heedSignals()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	fmt.Printf("{\"version\": %q, \"library\": \"\"}\n", runtime.Version())
	fmt.Printf("ready %d %d\n", os.Getpid(), listener.Addr().(*net.TCPAddr).Port)
	check((&http.Server{Protocols: &protocols}).Serve(listener))
}
