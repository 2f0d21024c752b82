// A peer in Go: a client that connects twice, receives an echo and resumes, or a server that echoes to
// clients with a certificate.   peer client PORT FOLDER VERSION | peer server FOLDER VERSION
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return value
}

func settings(folder, version string) *tls.Config {
	number := uint16(tls.VersionTLS13)
	if version == "TLSv1.2" {
		number = tls.VersionTLS12
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(folder + "/root.pem")))
	own := must(tls.LoadX509KeyPair(folder+"/chain.pem", folder+"/key.pem"))
	return &tls.Config{RootCAs: roots, ClientCAs: roots, Certificates: []tls.Certificate{own},
		MinVersion: number, MaxVersion: number, NextProtos: []string{"echo"}, ServerName: "localhost",
		ClientAuth: tls.RequireAndVerifyClientCert, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
}

func talk(port string, config *tls.Config) {
	stream := must(tls.Dial("tcp", "127.0.0.1:"+port, config))
	go func() {
		io.WriteString(stream, strings.Repeat("x", 200000))
		stream.CloseWrite()
	}()
	heard := must(io.ReadAll(stream))
	state := stream.ConnectionState()
	resumed := ""
	if state.DidResume {
		resumed = " resumed"
	}
	version := map[uint16]string{tls.VersionTLS12: "TLSv1.2", tls.VersionTLS13: "TLSv1.3"}
	fmt.Printf("%s %s %d%s\n", version[state.Version], state.NegotiatedProtocol, len(heard), resumed)
	stream.Close()
}

func main() {
	if os.Args[1] == "client" {
		config := settings(os.Args[3], os.Args[4])
		talk(os.Args[2], config)
		talk(os.Args[2], config)
		return
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Printf("port %d \n", listener.Addr().(*net.TCPAddr).Port)
	secure := tls.NewListener(listener, settings(os.Args[2], os.Args[3]))
	for {
		stream := must(secure.Accept())
		go func() {
			io.Copy(stream, stream)
			stream.(*tls.Conn).CloseWrite()
		}()
	}
}
