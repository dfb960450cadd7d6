package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

var echoWorks = []work{{"echo", echo}}

// echo serves a goroutine per connection until its standard input is closed.
func echo(options) result {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	need(err)
	go func() {
		for {
			connection, err := listener.Accept()
			need(err)
			go serve(connection)
		}
	}()
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	_, err = io.Copy(io.Discard, os.Stdin)
	need(err)
	return result{}
}

func serve(connection net.Conn) {
	defer connection.Close()
	data := make([]byte, 4096)
	for {
		n, err := connection.Read(data)
		if err != nil {
			return
		}
		if _, err := connection.Write(data[:n]); err != nil {
			return
		}
	}
}
