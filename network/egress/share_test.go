// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/redact/deep"
)

func TestOneProjectLooksThroughOneAnswerAtATime(t *testing.T) {
	var shares Shares
	var busy, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		p := shares.Open("one")
		all.Go(func() {
			defer p.Close()
			for range 1000 {
				p.look(func() {
					most.Store(max(most.Load(), busy.Add(1)))
					busy.Add(-1)
				})
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d at a time", most.Load())
	}
	if n := len(shares.open); n != 0 {
		t.Errorf("%d shares are left when all are closed", n)
	}
}

func TestAProjectDoesNotWaitForAnother(t *testing.T) {
	var shares Shares
	one, other := shares.Open("one"), shares.Open("other")
	defer one.Close()
	defer other.Close()
	one.look(func() {
		other.look(func() {}) // or it would wait for ever
		shares.Open("third").Close()
	})
}

func TestABodyIsLookedThroughInItsProjectsTurn(t *testing.T) {
	var shares Shares
	p := shares.Open("one")
	defer p.Close()
	body, w := pipeBody(deep.New([]string{value}))
	body.share = p
	defer body.Close()
	read := make(chan string, 1)
	p.look(func() {
		go func() {
			b := make([]byte, len("something"))
			_, _ = io.ReadFull(body, b)
			read <- string(b)
		}()
		_, _ = w.Write([]byte("something")) // it is read, and not looked through yet
		select {
		case got := <-read:
			t.Errorf("%q came out of turn", got)
		default:
		}
	})
	if got := <-read; got != "something" {
		t.Errorf("%q", got)
	}
}
