// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// The protocol's first version without sessions, and where it and other things
// of a request are named.
const (
	firstModern     = "2026-07-28"
	versionHeader   = "Mcp-Protocol-Version"
	sessionHeader   = "Mcp-Session-Id"
	methodHeader    = "Mcp-Method"
	nameHeader      = "Mcp-Name"
	lastEventHeader = "Last-Event-Id"
	versionMeta     = "io.modelcontextprotocol/protocolVersion"
	methodDiscovery = "server/discover"
	methodInit      = "initialize"
	methodsOfTasks  = "tasks/"
)

// envelope is the part of a message that is decoded before the SDK decodes it.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta   map[string]json.RawMessage `json:"_meta"`
		TaskID string                     `json:"taskId"`
		Name   json.RawMessage            `json:"name"` // read by who needs it: it may be anything
	} `json:"params"`
}

// saysModern reports whether a request's header names the era without sessions.
func saysModern(r *http.Request) bool {
	return r.Header.Get(versionHeader) >= firstModern // versions are dates, and sort as text
}

// open returns the era of a POST, and its message where that had to be read. A request that names
// a session is of the old era. Else the version decides, by header or in the message; and only
// the new era has the request for what there is. A body that is read is put back; the error is
// that it has more than most bytes.
func open(w http.ResponseWriter, r *http.Request, most int64) (modern bool, m envelope, err error) {
	if r.Header.Get(sessionHeader) != "" {
		return false, m, nil
	}
	modern = saysModern(r)
	if modern && !strings.HasPrefix(r.Header.Get(methodHeader), methodsOfTasks) {
		return true, m, nil
	}
	body, err := readBody(w, r, most)
	if err != nil {
		return false, m, err
	}
	if json.Unmarshal(body, &m) != nil {
		// A batch, or no message at all: the SDK's to judge.
		return modern, envelope{ID: m.ID, Method: m.Method}, nil
	}
	_, named := m.Params.Meta[versionMeta]
	return modern || named || m.Method == methodDiscovery, m, nil
}

// mayCall reports whether a caller's token may call the tools that a message calls; else it was answered. The era without
// sessions names the tool in a header, which the SDK holds against the message. Of a batch, which may have several calls, all
// or none is done.
func (h *Handler) mayCall(w *response, r *http.Request, caller access.Caller, modern bool) bool {
	if modern {
		var m envelope
		if r.Header.Get(methodHeader) != methodCallTool {
			return true
		}
		if !checkName(w, r, &m) {
			return false
		}
		return h.mayCallTool(w, r, caller, m.ID, r.Header.Get(nameHeader))
	}
	body, err := readBody(w, r, h.maxBody)
	if err != nil {
		w.refuse(http.StatusRequestEntityTooLarge, err.Error())
		return false
	}
	for m := range messages(body) {
		tool := ""
		if m.Method == methodCallTool && json.Unmarshal(m.Params.Name, &tool) == nil && !h.mayCallTool(w, r, caller, m.ID, tool) {
			return false
		}
	}
	return true
}

// messages are those of a body: one, or those of a batch, one after the other so that many are not held at once. What is no
// message ends them: the SDK judges that.
func messages(body []byte) iter.Seq[*envelope] {
	return func(yield func(*envelope) bool) {
		d := json.NewDecoder(bytes.NewReader(body))
		if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
			_, _ = d.Token() // the bracket
		}
		for d.More() {
			m := new(envelope)
			if d.Decode(m) != nil || !yield(m) {
				return
			}
		}
	}
}

// mayCallTool is mayCall of one call.
func (h *Handler) mayCallTool(w *response, r *http.Request, caller access.Caller, id json.RawMessage, tool string) bool {
	challenge, err := h.lacking(r, caller, tool)
	if err == nil {
		return true
	}
	if challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	e := fault.As(err)
	w.reject(http.StatusForbidden, id, codeRefused, e.Message+"; "+e.Remedy)
	return false
}

// readBody reads a body and puts it back.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("the message has more than %d bytes; send large files by REST: PUT /v1/sandboxes/{id}/files/{path}", tooBig.Limit)
	}
	// What was read is passed on: a reader of a body that broke off sees that.
	rest := io.Reader(bytes.NewReader(body))
	if err != nil {
		rest = io.MultiReader(rest, failed{err})
	}
	r.Body = io.NopCloser(rest)
	return body, nil
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// whole calls then once when a body has been read to its end, and keeps a body of at most keptBody
// bytes, since refusals of the SDK do not say what they refuse.
type whole struct {
	io.ReadCloser
	then func()
	read []byte // what was read of the body, up to one byte more than keptBody
}

const keptBody = 16 << 10

// message returns the message that was read, or nil if it is longer than what is kept or is not
// one message.
func (b *whole) message() *envelope {
	var m envelope
	if len(b.read) > keptBody || json.Unmarshal(b.read, &m) != nil {
		return nil
	}
	return &m
}

func (b *whole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = append(b.read, p[:min(n, keptBody+1-len(b.read))]...)
	if errors.Is(err, io.EOF) && b.then != nil {
		b.then()
		b.then = nil
	}
	return n, err
}

// Values that headers cannot carry as they are come in this form.
const (
	base64Begin = "=?base64?"
	base64End   = "?="
)

// checkName checks the header that names what a request is about, as the SDK does not: it decodes
// base64, and compares it for tasks. The header is a clone's. It reports whether the request may
// continue; else it was answered.
func checkName(w *response, r *http.Request, m *envelope) bool {
	name := r.Header.Get(nameHeader)
	if inner, ok := strings.CutPrefix(name, base64Begin); ok {
		if inner, ok = strings.CutSuffix(inner, base64End); ok {
			plain, err := base64.StdEncoding.DecodeString(inner)
			if err != nil {
				w.reject(http.StatusBadRequest, m.ID, mcp.CodeHeaderMismatch, "header mismatch: the base64 of the header Mcp-Name is broken")
				return false
			}
			name = string(plain)
			r.Header.Set(nameHeader, name)
		}
	}
	switch m.Method {
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
	default:
		return true
	}
	switch {
	case name == "":
		w.reject(http.StatusBadRequest, m.ID, mcp.CodeHeaderMismatch, fmt.Sprintf("missing required Mcp-Name header for method %q: it names the task", m.Method))
	case name != m.Params.TaskID:
		w.reject(http.StatusBadRequest, m.ID, mcp.CodeHeaderMismatch, fmt.Sprintf("header mismatch: Mcp-Name header value %q does not match params.taskId %q", clip(name), clip(m.Params.TaskID)))
	default:
		return true
	}
	return false
}
