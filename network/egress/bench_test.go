// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
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

// BenchmarkInjection makes requests over one connection to a host that a secret is bound to, and
// to one that none is. It gives the median of each, whose difference is what a secret adds.
func BenchmarkInjection(b *testing.B) {
	for _, way := range []string{"through", "bound"} {
		for _, two := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/http%d", way, map[bool]int{false: 1, true: 2}[two]), func(b *testing.B) {
				g := guard(b, restricted("allowed.example"), func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `{"answer": 42}`)
				})
				if way == "bound" {
					g.bind(secret("KEY", "allowed.example"))
				}
				c := g.client(web, two)
				took := make([]time.Duration, 0, b.N)
				get := func() {
					at := time.Now()
					resp, err := c.Get("https://allowed.example/")
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					took = append(took, time.Since(at))
				}
				get() // the connection is made
				took = took[:0]
				b.ResetTimer()
				for range b.N {
					get()
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			})
		}
	}
}

// BenchmarkInjectedBody carries a large answer through.
func BenchmarkInjectedBody(b *testing.B) {
	chunk := bytes.Repeat([]byte("a line of text that is like many others, with \"quotes\" and 100%\n"), 1<<14)
	for _, way := range []string{"through", "bound"} {
		b.Run(way, func(b *testing.B) {
			g := guard(b, restricted("allowed.example"), func(w http.ResponseWriter, _ *http.Request) {
				for range b.N {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			})
			if way == "bound" {
				g.bind(secret("KEY", "allowed.example"))
			}
			c := g.client(web, false)
			dial := c.Transport.(*http.Transport).DialContext
			c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err == nil {
					err = conn.SetDeadline(time.Time{})
				}
				return conn, err
			}
			b.SetBytes(int64(len(chunk)))
			b.ResetTimer()
			resp, err := c.Get("https://allowed.example/")
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); n != int64(b.N)*int64(len(chunk)) || err != nil {
				b.Fatal(n, err)
			}
			_ = resp.Body.Close()
		})
	}
}
