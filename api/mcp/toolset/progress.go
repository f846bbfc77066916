// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// How often a client that asked for it hears of a call.
const (
	progressPause = 500 * time.Millisecond
	heartbeat     = 15 * time.Second
	// lineShown is how much of a line is told, in characters; lineKept in bytes.
	lineShown = 200
	lineKept  = 2 << 10
)

// Progress tells a client how a call goes on: the last line of output at most
// twice a second, and a heartbeat when there is none. A nil progress does nothing.
type Progress struct {
	quit chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	current []byte // the line that is being written
	line    string // the last that was complete
	news    bool
}

// StartProgress starts the telling; stop ends it. notify is called by one
// goroutine, with a count that always rises.
func StartProgress(ctx context.Context, notify func(ctx context.Context, count float64, message string)) *Progress {
	p := &Progress{quit: make(chan struct{})}
	began := time.Now()
	p.wg.Go(func() {
		tick := time.NewTicker(progressPause)
		defer tick.Stop()
		last, count := began, 0.0
		for {
			select {
			case <-p.quit:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := time.Now()
			message, news := p.take()
			if !news {
				if now.Sub(last) < heartbeat {
					continue
				}
				message = fmt.Sprintf("running for %s", now.Sub(began).Round(time.Second))
			}
			count++
			last = now
			notify(ctx, count, message)
		}
	})
	return p
}

// Stop ends the telling and waits for it.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	close(p.quit)
	p.wg.Wait()
}

// Wrote takes output.
func (p *Progress) Wrote(data []byte) {
	if p == nil || len(data) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\r\n")
		part := data
		if i >= 0 {
			part = data[:i]
		}
		p.current = append(p.current, part[:min(len(part), lineKept-len(p.current))]...)
		if i < 0 {
			break
		}
		p.completeLocked()
		data = data[i+1:]
	}
	p.news = true
}

// Say takes a line of the server's own.
func (p *Progress) Say(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line, p.current, p.news = line, p.current[:0], true
}

func (p *Progress) completeLocked() {
	if len(bytes.TrimSpace(p.current)) > 0 {
		p.line = Clean(p.current)
	}
	p.current = p.current[:0]
}

// take returns the last line, and whether it is new.
func (p *Progress) take() (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := p.news
	p.news = false
	line := p.line
	if len(bytes.TrimSpace(p.current)) > 0 {
		line = Clean(p.current)
	}
	if utf8.RuneCountInString(line) > lineShown {
		line = FirstRunes(line, lineShown-1) + "…"
	}
	return line, news && line != ""
}
