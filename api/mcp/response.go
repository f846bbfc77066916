// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"
)

// response mends what the SDK leaves out: streams are marked for proxies that
// would hold them back, and refusals in plain text become JSON-RPC errors, which
// every client can read.
type response struct {
	http.ResponseWriter
	status int
	plain  bool // a refusal in plain text goes on
}

// codeRefused is JSON-RPC's invalid request: what was refused was no call yet.
const codeRefused = -32600

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *response) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	switch {
	case media == "text/event-stream":
		w.Header().Set("X-Accel-Buffering", "no")
	case status >= http.StatusBadRequest && status != http.StatusNotFound && media == "text/plain":
		// Not 404: it says that a session is gone, and some clients look for that
		// only where there is no JSON-RPC error.
		w.plain = true
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Type", "application/json")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.plain {
		return w.ResponseWriter.Write(p)
	}
	w.plain = false // refusals come in one piece
	if _, err := w.ResponseWriter.Write(refusal(w.status, strings.TrimSpace(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refuse answers an HTTP error with a message for people.
func (w *response) refuse(status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(refusal(status, message)) // the client went away: nothing to tell
}

func refusal(status int, message string) []byte {
	if status == http.StatusForbidden && message == "session user mismatch" {
		message = "the session was opened with another token; initialize one with this token"
	}
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	data, err := json.Marshal(struct {
		Version string   `json:"jsonrpc"`
		ID      *string  `json:"id"`
		Error   rpcError `json:"error"`
	}{"2.0", nil, rpcError{codeRefused, message}})
	if err != nil {
		return nil // cannot be: text and a number
	}
	return data
}
