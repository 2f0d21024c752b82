// A client with Go's net/http, which reads jobs: see table.py. It compiles with Go 1.19, where HTTP/2
// without TLS needs golang.org/x/net.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

type request struct {
	Path, Body string
	Size       int
}

type job struct {
	Port     int
	Timeout  float64
	Version  string
	Requests []request
}

type result struct {
	Status int    `json:"status,omitempty"`
	Body   string `json:"body"`
	Error  string `json:"error,omitempty"`
}

func ask(client *http.Client, port int, each request) (result, error) {
	method := "GET"
	var body io.Reader
	if each.Size > 0 {
		method = "POST"
		body = bytes.NewReader(bytes.Repeat([]byte("b"), each.Size))
	}
	if each.Body == "chunked" {
		body = io.MultiReader(bytes.NewReader([]byte("ch")), bytes.NewReader([]byte("unk")))
	}
	asked, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", port, each.Path), body)
	if err != nil {
		return result{}, err
	}
	if each.Body == "expected" {
		asked.Header.Set("Expect", "100-continue")
	}
	response, err := client.Do(asked)
	if err != nil {
		return result{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return result{Status: response.StatusCode, Body: string(text)}, err
}

func transport(version string) http.RoundTripper {
	if version != "2" {
		return &http.Transport{MaxConnsPerHost: 1, ExpectContinueTimeout: 5 * time.Second}
	}
	dial := func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return &http2.Transport{AllowHTTP: true, DialTLSContext: dial}
}

func run(work job) []result {
	client := &http.Client{Transport: transport(work.Version),
		Timeout: time.Duration(work.Timeout * float64(time.Second))}
	var results []result
	for _, each := range work.Requests {
		answer, err := ask(client, work.Port, each)
		if err != nil {
			answer = result{Error: err.Error()}
		}
		results = append(results, answer)
	}
	client.CloseIdleConnections()
	return results
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var work job
		if json.Unmarshal(lines.Bytes(), &work) != nil {
			os.Exit(1)
		}
		text, _ := json.Marshal(run(work))
		fmt.Println(string(text))
	}
}
