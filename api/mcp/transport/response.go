// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"sandpit.dev/sandbox"
)

// response adds what the SDK leaves out: streams are marked for proxies that would hold them
// back, and show signs of life; refusals in plain text become JSON-RPC errors, which every client
// can read.
//
// The SDK writes from other goroutines than the one that serves the request, and
// may do so after that has returned: what is written after end is lost.
type response struct {
	under  http.ResponseWriter
	header http.Header        // of the SDK's goroutines, until it is committed
	cancel context.CancelFunc // of the request, when it cannot be answered any more

	message func() *envelope // returns the message that is answered; nil, and returns nil, where it is not known

	mu     sync.Mutex
	status int
	events bool // a stream of them
	early  bool // which began with a sign of life, before the SDK had said anything
	plain  bool // a refusal in plain text, whose status is not sent yet
	ended  bool
	wrote  time.Time
	every  time.Duration
	beat   *time.Timer // nil: no signs of life
}

const (
	// codeRefused is JSON-RPC's invalid request: what was refused was no call yet.
	codeRefused = -32600
	// codeNoMethod is JSON-RPC's method not found.
	codeNoMethod = -32601
	// writeBound is how long a client may take to read what was written.
	writeBound = time.Minute
)

// signOfLife is an SSE comment, which clients pass over.
const signOfLife = ": keep-alive\n\n"

var errEnded = errors.New("the response has ended")

// newResponse wraps w. cancel is called when the client does not take what is written.
func newResponse(w http.ResponseWriter, cancel context.CancelFunc) *response {
	return &response{under: w, header: make(http.Header), cancel: cancel}
}

// Unwrap returns what is below to http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.under }

// Header returns the headers of the answer, which no longer count once it has begun.
func (w *response) Header() http.Header { return w.header }

// Flush sends what was written.
func (w *response) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended && w.status != 0 && !w.plain {
		w.flushLocked()
	}
}

func (w *response) flushLocked() { _ = http.NewResponseController(w.under).Flush() }

// WriteHeader begins the answer.
func (w *response) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginLocked(status)
}

func (w *response) beginLocked(status int) {
	if w.status != 0 || w.ended {
		return
	}
	w.status = status
	media, _, _ := mime.ParseMediaType(w.header.Get("Content-Type"))
	h := w.under.Header()
	maps.Copy(h, w.header)
	switch {
	case media == "text/event-stream":
		w.streamLocked()
	case status >= http.StatusBadRequest && status != http.StatusNotFound && media == "text/plain":
		// Not 404: it says that a session is gone, and some clients look for that
		// only where there is no JSON-RPC error.
		w.plain = true
		h.Del("Content-Length")
		h.Set("Content-Type", "application/json")
		return
	}
	w.under.WriteHeader(status)
}

// refuseLocked answers what the SDK refuses in plain text. A call of a method that does not exist
// is an answered call, with its id: clients ask so what a server can do.
func (w *response) refuseLocked(text string) []byte {
	w.plain = false // refusals come in one piece
	if strings.HasPrefix(text, noMethod) && w.message != nil {
		if m := w.message(); m != nil && len(m.ID) > 0 {
			w.under.WriteHeader(http.StatusOK)
			return rpcFailure(m.ID, codeNoMethod, fmt.Sprintf("there is no method %q", clip(m.Method)))
		}
	}
	w.under.WriteHeader(w.status)
	return refusal(w.status, text)
}

// noMethod is how the SDK begins the refusal of a method that it does not know.
const noMethod = "JSON RPC not handled"

// streamLocked notes that the answer is a stream of events.
func (w *response) streamLocked() {
	w.events = true
	h := w.under.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// Write writes a part of the answer.
func (w *response) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return 0, errEnded
	}
	if w.status == 0 {
		w.beginLocked(http.StatusOK)
	}
	out := p
	switch {
	case w.plain:
		out = w.refuseLocked(strings.TrimSpace(string(p)))
	case w.early && len(p) > 0 && p[0] == '{':
		// An error that would have been an answer of its own, had the stream not begun.
		out = append(append([]byte("event: message\ndata: "), p...), "\n\n"...)
	}
	if err := w.writeLocked(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *response) writeLocked(p []byte) error {
	if w.events {
		// Not every connection has deadlines.
		_ = http.NewResponseController(w.under).SetWriteDeadline(time.Now().Add(writeBound))
	}
	_, err := w.under.Write(p)
	w.wrote = time.Now()
	if err != nil {
		w.cancel()
	}
	return err
}

// stayAlive shows a sign of life whenever the answer has been silent for so long, if it is a
// stream of events or has not begun. In the second case it starts the answer as a stream, after
// first: the caller knows that the request was read, and will be answered by a stream unless it
// is refused at once.
func (w *response) stayAlive(first, every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.beat != nil {
		return
	}
	w.every, w.wrote = every, time.Now()
	w.beat = time.AfterFunc(min(first, every), w.show)
}

func (w *response) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.status != 0 && !w.events {
		return
	}
	if left := w.every - time.Since(w.wrote); left > 0 && w.status != 0 {
		w.beat.Reset(left)
		return
	}
	if w.status == 0 {
		w.status, w.early = http.StatusOK, true
		w.streamLocked()
		w.under.WriteHeader(http.StatusOK)
	}
	if w.writeLocked([]byte(signOfLife)) != nil {
		return
	}
	w.flushLocked()
	w.beat.Reset(w.every)
}

// end is called when the request has been served, and before its connection
// serves another.
func (w *response) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended && w.status == 0 {
		w.beginLocked(http.StatusOK) // as the SDK left it: an answer without a body
	}
	if w.plain && !w.ended {
		_, _ = w.under.Write(w.refuseLocked("")) // the client went away: nothing to report
	}
	w.ended = true
	if w.beat != nil {
		w.beat.Stop()
	}
	if w.events {
		_ = http.NewResponseController(w.under).SetWriteDeadline(time.Time{})
	}
}

// refuse answers an HTTP error with a message for people.
func (w *response) refuse(status int, message string) {
	w.header.Set("Content-Type", "application/json")
	w.header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(refusal(status, message)) // the client went away: nothing to report
}

// reject answers a call with a JSON-RPC error, and the HTTP status that belongs to it.
func (w *response) reject(status int, id json.RawMessage, code int, message string) {
	w.header.Set("Content-Type", "application/json")
	w.header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(rpcFailure(id, code, message)) // the client went away: nothing to report
}

func refusal(status int, message string) []byte {
	if status == http.StatusForbidden && message == "session user mismatch" {
		message = otherToken
	}
	return rpcFailure(nil, codeRefused, message)
}

// otherToken is the error for a session's id that comes with another token.
const otherToken = "the session was opened with another token; initialize one with this token"

// maxShown bounds what a message repeats of a value, in bytes.
const maxShown = 80

func clip(s string) string { return sandbox.Clip(s, maxShown) }

// rpcFailure returns a JSON-RPC error that answers the call id, which may be nil.
func rpcFailure(id json.RawMessage, code int, message string) []byte {
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, message}})
	if err != nil {
		return nil // cannot be: the id was parsed, the rest is text and a number
	}
	return data
}
