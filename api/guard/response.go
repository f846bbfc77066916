// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// response records what was answered. It hides no ability of the writer below: flushing,
// hijacking and deadlines go through Unwrap.
type response struct {
	http.ResponseWriter
	pass   *pass
	status int // 0: nothing was answered yet
	bytes  int64
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// abort has net/http cut the connection, unless it has none any more.
func (w *response) abort() {
	if w.ResponseWriter != nil {
		panic(http.ErrAbortHandler)
	}
}

// finish ends every request: a panic becomes an answer, and the request is logged and measured.
// It is deferred, so that it sees the panic.
func (g *Guard) finish(w *response, r *http.Request, began time.Time) {
	var stack []byte
	v := recover()
	if serve := w.pass.detached; serve != nil && v == nil {
		w.pass.detached = nil
		w.ResponseWriter = nil // by it net/http's buffers would be kept
		go func() {
			defer g.finish(w, r, began)
			serve()
		}()
		return
	}
	w.pass.end()
	if v != nil {
		if v == http.ErrAbortHandler {
			// The handler broke its answer off on purpose; net/http must cut the connection.
			defer w.abort()
			w.pass.err = fault.New(fault.Canceled, "the answer was broken off")
		} else {
			stack = debug.Stack()
			err := fault.New(fault.Internal, "panic: %v", v)
			if w.status == 0 {
				w.pass.door.refuse(w, r, err)
			} else {
				// Half an answer must not look like a whole one.
				w.pass.err = err
				defer w.abort()
			}
		}
	}
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	took := time.Since(began)
	ctx := context.WithoutCancel(r.Context()) // it is over where the client has gone, or the handler has returned before
	w.pass.endTrace(status)
	if g.observe != nil {
		g.observe(Observation{Method: method(r.Method), Route: r.Pattern, Status: status, Duration: took, BytesOut: w.bytes})
	}
	if g.record != nil {
		g.record(ctx, &w.pass.operation, audit.Answer{
			Type: audit.Call, Path: sandbox.Clip(r.URL.EscapedPath(), maxLoggedPath), Status: status, Err: w.pass.err, Took: took, Bytes: w.bytes,
			Presented: w.pass.presented || len(r.Header["Authorization"]) > 0,
		})
	}
	level := slog.LevelDebug
	switch {
	case status >= 500 && status != http.StatusNotImplemented && !w.pass.asked:
		level = slog.LevelError
	case status >= 400, g.logAll != nil && g.logAll():
		level = slog.LevelInfo
	}
	if !g.log.Enabled(ctx, level) {
		return
	}
	var leftOut int64
	longest := maxLoggedError
	if !w.pass.known && status >= 400 && !w.pass.asked {
		var ok bool
		if leftOut, ok = g.strangers.admit(); !ok {
			return
		}
		longest = maxLoggedPath
	}
	attrs := []slog.Attr{
		slog.String("request", w.pass.id), slog.String("method", method(r.Method)), slog.String("path", sandbox.Clip(r.URL.EscapedPath(), maxLoggedPath)),
		slog.Int("status", status), slog.Duration("duration", took), slog.Int64("bytes", w.bytes),
		slog.String("project", w.pass.caller.Project), slog.String("actor", w.pass.caller.Actor),
	}
	if id := w.pass.span.TraceID(); id != "" {
		attrs = append(attrs, slog.String("trace", id))
	}
	if w.pass.err != nil {
		attrs = append(attrs, slog.String("error", sandbox.Clip(w.pass.err.Error(), longest)))
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Int64("requests_left_out", leftOut))
	}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	g.log.LogAttrs(ctx, level, "request", attrs...)
}

// method keeps a label's values few: a client may send any word.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "OTHER"
}
