// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// A thousand changes while connections, datagrams and questions are under way: what the policy
// of the moment forbids is cut, and nothing is left of what was cut.
func TestAThousandChangesUnderLoad(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) {
		b := make([]byte, 1000)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	})
	echo, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	p.world.mu.Lock()
	p.world.servers["udp 93.184.216.1:9"] = echo.LocalAddr().String()
	p.world.mu.Unlock()
	p.ask("8.8.8.8:53", "allowed.example", dnsmessage.TypeA)

	listed := restricted("allowed.example")
	listed.AllowCIDRs = []netip.Prefix{netip.MustParsePrefix("93.184.216.0/24")}
	policies := []*policy.Policy{
		rules("allowed.example"), rules("other.example"), policy.New(listed, policy.Operator{}),
		policy.New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, policy.Operator{}), policy.New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, policy.Operator{}),
	}
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)

	const changes = 1000
	var stop atomic.Bool
	var carried, cut atomic.Int64
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			b := []byte("some bytes\n")
			for !stop.Load() {
				c, err := p.dial("tcp", "93.184.216.1:7")
				if err != nil {
					continue
				}
				for !stop.Load() {
					_, err := c.Write(b)
					if err == nil {
						_, err = c.Read(make([]byte, len(b)))
					}
					if err != nil {
						cut.Add(1)
						break
					}
					carried.Add(1)
				}
				_ = c.Close()
			}
		})
	}
	work.Go(func() {
		for !stop.Load() {
			if u, err := p.dial("udp", "93.184.216.1:9"); err == nil {
				_, _ = u.Write([]byte("x"))
				_ = u.Close()
			}
		}
	})
	work.Go(func() {
		for !stop.Load() {
			p.gate.answer(t.Context(), question(t, "allowed.example"), true)
		}
	})
	// A change is no change before something is under way that it could cut.
	for n := range changes {
		before := carried.Load()
		p.gate.SetPolicy(policies[n%len(policies)])
		if n%50 == 0 {
			p.gate.SetPolicy(policies[0])
			until(t, "bytes pass", func() bool { return carried.Load() > before })
		}
	}
	p.gate.SetPolicy(policies[len(policies)-1])
	until(t, "all that was open is cut", func() bool {
		p.gate.mu.Lock()
		defer p.gate.mu.Unlock()
		return len(p.gate.flows) == 0 && len(p.gate.paths) == 0
	})
	stop.Store(true)
	work.Wait()
	if carried.Load() == 0 || cut.Load() == 0 {
		t.Errorf("%d exchanges were carried, %d connections cut: there was no load", carried.Load(), cut.Load())
	}
	p.gate.mu.Lock()
	if p.gate.open != [2]int{} {
		t.Errorf("flows are counted that are not there: %v", p.gate.open)
	}
	p.gate.mu.Unlock()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	// What splices bytes is kept by Go for the next connection, until it is collected.
	until(t, "no descriptor is left", func() bool {
		runtime.GC()
		return openFiles(t) <= descriptors
	})
	p.gate.SetPolicy(policies[0])
	if status, body, err := p.get("93.184.216.1:80", "allowed.example"); err != nil || status != 200 || body != "allowed" {
		t.Errorf("after the changes: %d, %q, %v", status, body, err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
