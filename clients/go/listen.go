package cbench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// listen opens the socket for an address.
func listen(s *settings) (net.Listener, error) {
	if path, isUnix := socketPath(s.address); isUnix {
		return listenUnix(s.address, path)
	}
	if _, _, err := net.SplitHostPort(s.address); err != nil {
		return nil, cannotServe("%q has no port; give host:port, or unix:/path", s.address)
	}
	if !isLoopback(s.address) && (s.tls == nil || s.token == "") && !s.isUnsafe {
		return nil, cannotServe("%s can be reached from the network, where anybody could call what is served; "+
			"pass WithTLS and WithToken, serve on 127.0.0.1, or accept it with WithUnsafe", s.address)
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return nil, cannotServe("cannot listen on %s; choose another address, or port 0 for any free one: %w", s.address, err)
	}
	return listener, nil
}

func socketPath(address string) (path string, isUnix bool) {
	path, isUnix = strings.CutPrefix(address, "unix:")
	return strings.TrimPrefix(path, "//"), isUnix
}

func listenUnix(address, path string) (net.Listener, error) {
	// The file of a server that was killed stays behind; one that runs answers.
	if probe, err := net.Dial("unix", path); err == nil {
		probe.Close()
		return nil, cannotServe("%s is taken by another server; stop it, or choose another path", address)
	} else if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, cannotServe("cannot replace the socket a dead server left: %w", err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, cannotServe("cannot listen on %s: %w", address, err)
	}
	return listener, nil
}

// realAddress is the address asked for, with the port that was found.
func realAddress(asked string, listener net.Listener) string {
	host, _, err := net.SplitHostPort(asked)
	if _, isUnix := socketPath(asked); isUnix || err != nil {
		return asked
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return net.JoinHostPort(host, port)
}

// handshake tells the parent process where this one listens, if it was
// started so: on port 0, or with CBENCH_HANDSHAKE=1 in the environment.
//
// After it stdout may no longer be read, so that what is printed goes
// to stderr instead.
//
// What is returned undoes that.
func handshake(asked, address string) func() {
	_, port, _ := net.SplitHostPort(asked)
	if port != "0" && os.Getenv("CBENCH_HANDSHAKE") != "1" {
		return func() {}
	}
	where := "tcp|" + address
	if path, isUnix := socketPath(address); isUnix {
		where = "unix|" + path
	}
	fmt.Fprintf(os.Stdout, "cbench|1|%s\n", where)
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return func() { os.Stdout = stdout }
}
