// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// startEvents hears when containers of the Engine have started, by the Engine's own clock, which is this host's.
type startEvents struct {
	body  interface{ Close() error }
	heard chan startEvent
	done  chan struct{} // closed when nothing is heard any more
}

// startEvent is one of them.
type startEvent struct {
	container string
	sandbox   string // "": it is none
	at        time.Time
}

// sandboxLabel is how the docker runtime labels a sandbox's container.
const sandboxLabel = "dev.sandpit.sandbox"

const eventTimeout = 10 * time.Second

// startEvents begins to listen. The caller closes it.
func (e *engine) startEvents(ctx context.Context) (*startEvents, error) {
	filters, err := json.Marshal(map[string][]string{"type": {"container"}, "event": {"start"}})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/events?"+url.Values{"filters": {string(filters)}}.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the Engine's events: %s", resp.Status)
	}
	s := &startEvents{resp.Body, make(chan startEvent, 64), make(chan struct{})}
	go func() { // ends when the body is closed
		defer close(s.done)
		d := json.NewDecoder(resp.Body)
		for {
			var event struct {
				Actor struct {
					ID         string
					Attributes map[string]string
				}
				TimeNano int64 `json:"timeNano"`
			}
			if d.Decode(&event) != nil {
				return
			}
			select {
			case s.heard <- startEvent{event.Actor.ID, event.Actor.Attributes[sandboxLabel], time.Unix(0, event.TimeNano)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s, nil
}

// of returns when the container started that fits. Others that are heard before it are passed over.
func (s *startEvents) of(ctx context.Context, fits func(startEvent) bool) (time.Time, error) {
	limit, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		select {
		case event := <-s.heard:
			if fits(event) {
				return event.at, nil
			}
		case <-limit.Done():
			return time.Time{}, fmt.Errorf("the Engine did not tell of a container's start: %w", limit.Err())
		}
	}
}

func (s *startEvents) close() error {
	err := s.body.Close()
	<-s.done
	return err
}
