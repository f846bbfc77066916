// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// BenchmarkThroughput carries bytes out of a sandbox to a server on this host.
func BenchmarkThroughput(b *testing.B) {
	p := network(b, restricted("allowed.example"))
	done := make(chan int64, 1)
	p.world.serve(b, "93.184.216.1:5001", func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c)
		done <- n
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:5001")
	if err != nil {
		b.Fatal(err)
	}
	_ = c.SetDeadline(time.Time{})
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.(*net.TCPConn).CloseWrite()
	if n := <-done; n != int64(b.N)<<20 {
		b.Errorf("%d bytes arrived of %d", n, int64(b.N)<<20)
	}
}

// BenchmarkRequest makes a request on a new connection, through the gate and without.
func BenchmarkRequest(b *testing.B) {
	p := network(b, restricted("allowed.example"))
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	direct := p.world.servers["tcp 93.184.216.1:80"]
	host := &place{TB: b, ns: hostNetwork(b)}
	for _, way := range []struct {
		name string
		p    *place
		to   string
	}{{"gate", p, "93.184.216.1:80"}, {"direct", host, direct}} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				if status, _, err := way.p.get(way.to, "allowed.example"); status != 200 || err != nil {
					b.Fatal(status, err)
				}
			}
		})
	}
}
