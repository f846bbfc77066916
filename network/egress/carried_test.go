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

// What a connection carries is counted while it is open, and the same when it has ended.
func TestWhatIsCarriedIsCounted(t *testing.T) {
	const asked, answered = 300_000, 1_000_000
	var sum Counter
	p := network(t, restricted("allowed.example"), func(o *Options) { o.Counter = &sum })
	said := make(chan struct{})
	p.world.serve(t, "93.184.216.1:5001", func(c net.Conn) {
		defer c.Close()
		if _, err := io.CopyN(io.Discard, c, asked); err != nil {
			t.Error(err)
		}
		if _, err := c.Write(make([]byte, answered)); err != nil {
			t.Error(err)
		}
		<-said
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:5001")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := c.Write(make([]byte, asked)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, answered); err != nil {
		t.Fatal(err)
	}
	want := Carried{In: answered, Out: asked}
	if got := sum.Carried(); got != want {
		t.Errorf("while it is open: got %+v, want %+v", got, want)
	}
	close(said)
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil {
		t.Errorf("behind all: %d, %v", n, err)
	}
	_ = c.Close()
	for ended := false; !ended; {
		sum.mu.Lock()
		ended = len(sum.live) == 0
		sum.mu.Unlock()
	}
	if got := sum.Carried(); got != want {
		t.Errorf("after its end: got %+v, want %+v", got, want)
	}
}

// What is refused carries nothing.
func TestARefusedConnectionCarriesNothing(t *testing.T) {
	var sum Counter
	p := network(t, restricted("allowed.example"), func(o *Options) { o.Counter = &sum })
	if status, _, err := p.get("93.184.216.9:80", "other.example"); err == nil && status == 200 {
		t.Fatal("it was let through")
	}
	if got := sum.Carried(); got != (Carried{}) {
		t.Errorf("it carried %+v", got)
	}
}
