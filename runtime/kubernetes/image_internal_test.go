// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/fault"
)

func TestAnImageIsPublishedOnce(t *testing.T) {
	d := &Driver{publishes: make(map[string]*publishing), log: slog.New(slog.DiscardHandler)}
	d.running, d.stop = context.WithCancel(context.Background())
	broken := errors.New("the registry is away")
	if _, err := d.published(t.Context(), "r/image:1", "an image", func(context.Context) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("of a registry that is away: %v", err)
	}
	var times atomic.Int32
	begun, enough := make(chan struct{}), make(chan struct{})
	publish := func(context.Context) (string, error) {
		times.Add(1)
		close(begun)
		<-enough
		return "sha256:ab", nil
	}
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := d.published(gone, "r/image:1", "an image", publish)
		left <- err
	}()
	<-begun
	leave()
	if err := <-left; !fault.Is(err, fault.Unavailable) || fault.As(err).Remedy == "" {
		t.Errorf("of a caller that goes away: %v", err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if got, err := d.published(t.Context(), "r/image:1", "an image", publish); err != nil || got != "r/image:1@sha256:ab" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	close(enough)
	all.Wait()
	if n := times.Load(); n != 1 {
		t.Errorf("it was published %d times", n)
	}
	d.mu.Lock()
	d.stop()
	d.mu.Unlock()
	d.workers.Wait()
	if _, err := d.published(t.Context(), "r/image:2", "an image", publish); !fault.Is(err, fault.Unavailable) {
		t.Errorf("of a driver that is closed: %v", err)
	}
}
