// An HTTP/2 peer with Go's packages net/http and golang.org/x/net/http2.
//
//	http2_peer serve       prints its port; GET /long is 300,000 bytes, a POST is echoed, with a
//	                       trailer Checksum
//	http2_peer ask URL     sends 40 requests to URL/trailers and 3 MB to URL, concurrently; prints the
//	                       version, status, size and trailer Checksum of each response
//
// It compiles with Go 1.19, where HTTP/2 without TLS needs x/net.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

const calls, long, sent = 40, 300_000, 3_000_000

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	http.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		w.Write(bytes.Repeat([]byte("x"), long))
	})
	http.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Checksum")
		io.Copy(w, r.Body)
		w.Header().Set("Checksum", "sum")
	})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	settings := http2.Server{MaxConcurrentStreams: 16}
	check(http.Serve(listener, h2c.NewHandler(http.DefaultServeMux, &settings)))
}

func show(answer *http.Response, err error) {
	check(err)
	size, err := io.Copy(io.Discard, answer.Body)
	check(err)
	fmt.Println(answer.ProtoMajor, answer.StatusCode, size, answer.Trailer.Get("Checksum"))
}

func transport(url string) http.RoundTripper {
	if strings.HasPrefix(url, "https:") {
		return &http2.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	}
	dial := func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &http2.Transport{AllowHTTP: true, DialTLSContext: dial}
}

func ask(url string) {
	client := http.Client{Transport: transport(url)}
	var all sync.WaitGroup
	all.Add(calls + 1)
	for i := 0; i < calls; i++ {
		go func() {
			defer all.Done()
			show(client.Get(url + "/trailers"))
		}()
	}
	go func() {
		defer all.Done()
		show(client.Post(url+"/", "text/plain", bytes.NewReader(make([]byte, sent))))
	}()
	all.Wait()
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "ask" {
		ask(os.Args[2])
	} else {
		serve()
	}
}
