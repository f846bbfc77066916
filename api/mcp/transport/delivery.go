// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"strings"
	"sync"
	"time"
)

// delivery is the way back of the answers to one POST of the handshake era. A client that lost
// its connection may fetch them with another request, if it knows the stream; so the calls go on
// for a while, and end if no client came. In the stateless era the SDK ends them with the
// request.
type delivery struct {
	grace   time.Duration
	abandon func(_ *delivery, since time.Time) // ends the calls whose answers have had no reader since then

	mu      sync.Mutex
	stream  string // "": no call was read yet
	heard   bool   // the client can name the stream
	readers int    // requests that deliver
	timer   *time.Timer
	left    time.Time // when the last of them ended
}

type deliveryKey struct{}

func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(deliveryKey{}).(*delivery)
	return d
}

// open learns the stream's name.
func (d *delivery) open(stream string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stream = stream
}

func (d *delivery) streamID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stream
}

// sent learns that the stream's name may have gone out with an event.
func (d *delivery) sent() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = true
}

// attach registers a request that delivers.
func (d *delivery) attach() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// detach removes such a request. broken: the client went away.
func (d *delivery) detach(broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers--
	d.left = time.Now()
	if !broken || d.readers > 0 || d.stream == "" {
		return
	}
	grace := d.grace
	if !d.heard {
		grace = 0
	}
	d.timer = time.AfterFunc(grace, func() { d.giveUp() })
}

func (d *delivery) giveUp() {
	d.mu.Lock()
	back, left := d.readers > 0, d.left
	d.mu.Unlock()
	if !back {
		d.abandon(d, left)
	}
}

// streamOf returns the stream of an event's id, as the SDK writes it.
func streamOf(event string) string {
	stream, _, _ := strings.Cut(event, "_")
	return stream
}
