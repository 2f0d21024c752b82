// The handlers of peers_server, on Go's net/http: what random programs are compared with. Prints its
// address.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

const limit = 1000

func say(w http.ResponseWriter, r *http.Request) {
	text := fmt.Sprintf("%s %s\n", r.URL.Path, r.URL.RawQuery)
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	io.WriteString(w, text)
}

func sayInPieces(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	for _, letter := range fmt.Sprintf("%s %s\n", r.URL.Path, r.URL.RawQuery) {
		io.WriteString(w, string(letter))
		w.(http.Flusher).Flush()
	}
}

func sayIfShort(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength <= limit {
		if size, _ := io.Copy(io.Discard, io.LimitReader(r.Body, limit+1)); size <= limit {
			say(w, r)
			return
		}
	}
	w.WriteHeader(http.StatusRequestEntityTooLarge)
}

func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/during":
		r.Body.Read(make([]byte, 1))
	case "/after":
		io.Copy(io.Discard, r.Body)
	case "/chunks":
		sayInPieces(w, r)
		return
	case "/limited":
		sayIfShort(w, r)
		return
	case "/drops":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "/aborts":
		panic(http.ErrAbortHandler)
	}
	say(w, r)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	http.Serve(listener, http.HandlerFunc(serve))
}
