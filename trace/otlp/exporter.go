// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package otlp sends spans to a tracing system, by OTLP over HTTP with bodies of protobuf. It is written by hand: what is
// sent are a dozen fields, and OpenTelemetry's own exporter brings gRPC along. A tracing system that is slow or away costs
// spans and nothing else.
package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"sandpit.dev/trace"
)

// Options of an [Exporter].
type Options struct {
	URL      string            // where spans are sent, as http://localhost:4318/v1/traces; required
	Headers  map[string]string // of each request; they may be secrets, and are in no log
	Resource []trace.Attribute // what is known of this server
	Version  string            // of this program
	Timeout  time.Duration     // of a request; zero: 10 s
	Delay    time.Duration     // for how long spans are gathered; zero: 5 s
	Client   *http.Client      // nil: one that follows no redirect
	Logger   *slog.Logger      // nil: none
}

// Bounds of what is kept until it is sent.
const (
	maxQueue = 2048 // spans
	maxBatch = 512
	tries    = 3 // of a batch
	maxWait  = 30 * time.Second
	flush    = 3 * time.Second // for what is left at the end
	maxTold  = 4 << 10         // bytes of an answer that are read
)

// Exporter sends spans. It is safe for concurrent use.
type Exporter struct {
	o     Options
	queue chan *trace.Data

	sent, dropped, failed atomic.Int64
}

// New returns an exporter, which sends nothing before Run.
func New(o Options) *Exporter {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Delay <= 0 {
		o.Delay = 5 * time.Second
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // with its headers, to elsewhere
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Exporter{o: o, queue: make(chan *trace.Data, maxQueue)}
}

// Export takes a span to be sent, or drops it where too many wait. It does not block.
func (e *Exporter) Export(d *trace.Data) {
	select {
	case e.queue <- d:
	default:
		e.dropped.Add(1)
	}
}

// Counts is what became of spans.
type Counts struct {
	Sent    int64
	Dropped int64 // since too many waited
	Failed  int64 // since they could not be sent
}

// Counts returns what became of spans so far.
func (e *Exporter) Counts() Counts {
	return Counts{e.sent.Load(), e.dropped.Load(), e.failed.Load()}
}

// Run sends spans until ctx is done, and then for a moment what is left.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.o.Client.CloseIdleConnections()
	tick := time.NewTicker(e.o.Delay)
	defer tick.Stop()
	var batch []*trace.Data
	for {
		over := false
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flush)
			defer cancel()
			e.rest(last, batch)
			return nil
		case d := <-e.queue:
			batch = append(batch, d)
			over = len(batch) >= maxBatch
		case <-tick.C:
			over = len(batch) > 0
		}
		if over && ctx.Err() == nil { // else it is among what is left
			e.send(ctx, batch)
			batch = nil
		}
	}
}

// rest sends what is left.
func (e *Exporter) rest(ctx context.Context, batch []*trace.Data) {
	for {
		select {
		case d := <-e.queue:
			if batch = append(batch, d); len(batch) < maxBatch {
				continue
			}
			e.send(ctx, batch)
			batch = nil
			continue
		default:
		}
		if len(batch) > 0 {
			e.send(ctx, batch)
		}
		return
	}
}

// send sends a batch, again where the answer says that this may help.
func (e *Exporter) send(ctx context.Context, batch []*trace.Data) {
	if ctx.Err() != nil { // there is no time left
		e.failed.Add(int64(len(batch)))
		return
	}
	body := encode(e.o.Resource, "sandpit.dev", e.o.Version, batch)
	wait := time.Second
	for try := 1; ; try++ {
		after, err := e.post(ctx, body)
		if err == nil {
			e.sent.Add(int64(len(batch)))
			return
		}
		if after < 0 || try == tries || ctx.Err() != nil {
			e.failed.Add(int64(len(batch)))
			e.o.Logger.Warn("spans could not be sent", "spans", len(batch), "error", err)
			return
		}
		timer := time.NewTimer(min(max(wait, after), maxWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			e.failed.Add(int64(len(batch)))
			return
		case <-timer.C:
		}
		wait *= 2
	}
}

// post sends a body. After an error it says how long to wait before the next try; negative: there shall be none.
func (e *Exporter) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	end := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.Timeout)
	defer cancel()
	defer context.AfterFunc(end, func() { // what is under way at the end has a moment more
		stop := time.AfterFunc(flush, cancel)
		<-ctx.Done()
		stop.Stop()
	})()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	for name, value := range e.o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "sandpit/"+e.o.Version)
	resp, err := e.o.Client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxTold)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // as OTLP has it
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date is as none
		return min(time.Duration(max(seconds, 0))*time.Second, maxWait), fmt.Errorf("the tracing system answered %s", resp.Status)
	}
	return -1, fmt.Errorf("the tracing system answered %s", resp.Status)
}
