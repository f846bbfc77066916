// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerdtest

import (
	"io"
	"net"
	"sync"

	"sandpit.dev/internal/dockerd"
)

// ServeTCP returns an address of the test's own network that leads to the Engine's TCP port in another one, until the test's end. What is sent is not
// looked at.
func (h *Host) ServeTCP() string {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	engine := h.engine
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := engine.DialTCP(dockerd.TLSAddress)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open[in], open[out] = true, true
			mu.Unlock()
			all.Go(func() { join(in, out) })
			all.Go(func() {
				join(out, in)
				_, _ = in.Close(), out.Close()
				mu.Lock()
				defer mu.Unlock()
				delete(open, in)
				delete(open, out)
			})
		}
	})
	h.t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// join sends on what comes, and the end of it.
func join(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
}
