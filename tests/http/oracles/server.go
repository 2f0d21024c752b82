// Responds with 200 to every request that it has read completely.   server PORT
package main

import (
	"io"
	"net/http"
	"os"
)

func answer(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func main() {
	http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(answer))
}
