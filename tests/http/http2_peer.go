// The other end of HTTP/2, by Go's net/http.
//
//	http2_peer serve       prints its port; GET /long is 300,000 bytes, a POST is echoed with Checksum
//	                       behind it
//	http2_peer ask URL     40 times URL/trailers and once 3 MB to URL, at once: of each the version, the
//	                       status, how long the answer was, and what Checksum behind it says
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
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
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	settings := http.HTTP2Config{MaxConcurrentStreams: 16}
	check((&http.Server{Protocols: &protocols, HTTP2: &settings}).Serve(listener))
}

func show(answer *http.Response, err error) {
	check(err)
	size, err := io.Copy(io.Discard, answer.Body)
	check(err)
	fmt.Println(answer.ProtoMajor, answer.StatusCode, size, answer.Trailer.Get("Checksum"))
}

func ask(url string) {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{
		Protocols: &protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { show(client.Get(url + "/trailers")) })
	}
	all.Go(func() {
		show(client.Post(url+"/", "text/plain", bytes.NewReader(make([]byte, sent))))
	})
	all.Wait()
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "ask" {
		ask(os.Args[2])
	} else {
		serve()
	}
}
