// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
)

// The transport of the protocol's first version, HTTP+SSE, which some clients
// are still set up for: a GET opens a stream of events, whose first names the
// address for messages; answers come on the stream. When the stream ends, so does
// the session, with the commands of its calls.
//
// The SDK's own handler of it passes on neither a message's token nor a session's id, so
// that no call would have a caller; and it has no bound of sessions and no signs of life.

// sseParam names a session in the address for its messages.
const sseParam = "sessionId"

// sseQueued bounds the messages of a session that wait for the SDK, which takes
// them at once unless the server has too much to do.
const sseQueued = 64

// sse are the open sessions of that transport, by id.
type sse struct {
	mu   sync.Mutex
	open map[string]*sseSession
}

func newSSE() *sse { return &sse{open: make(map[string]*sseSession)} }

func (s *sse) get(id string) *sseSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *sse) put(x *sseSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[x.id] = x
}

func (s *sse) drop(x *sseSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, x.id)
}

// sseSession is one of them: the SDK's transport, and its connection.
type sseSession struct {
	id       string // it cannot be guessed, and is useless without the token anyway
	identity string
	w        *response
	incoming chan jsonrpc.Message
	done     chan struct{}
	once     sync.Once
}

// Connect returns the connection, which is there already.
func (s *sseSession) Connect(context.Context) (mcp.Connection, error) { return s, nil }

// SupportsProtocolVersion reports whether v is before the stateless era, which has no such
// transport.
func (s *sseSession) SupportsProtocolVersion(v string) bool { return v < firstModern }

// SessionID returns the session's id.
func (s *sseSession) SessionID() string { return s.id }

// Read waits for a message of the client's.
func (s *sseSession) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-s.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	case m := <-s.incoming:
		return m, nil
	}
}

// Write sends a message on the stream.
func (s *sseSession) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if err := s.event("message", data); err != nil {
		return errors.Join(err, io.ErrClosedPipe)
	}
	return nil
}

func (s *sseSession) event(name string, data []byte) error {
	var b bytes.Buffer
	b.Grow(len(data) + 32)
	fmt.Fprintf(&b, "event: %s\ndata: ", name)
	b.Write(data)
	b.WriteString("\n\n")
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	s.w.Flush()
	return nil
}

// Close ends the session; its request ends after it. Calling it twice is fine.
func (s *sseSession) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// openSSE serves the stream of a new session until the client goes away.
func (h *Handler) openSSE(w *response, r *http.Request, caller access.Caller) {
	admitted, err := h.sessions.admit(caller)
	if err != nil {
		w.refuse(http.StatusTooManyRequests, err.Error())
		return
	}
	s := &sseSession{
		id: rand.Text() + rand.Text(), identity: Identity(caller), w: w,
		incoming: make(chan jsonrpc.Message, sseQueued), done: make(chan struct{}),
	}
	h.sse.put(s)
	h.sessions.begin(r.Context(), s.id)
	admitted()
	defer func() {
		h.sse.drop(s)
		h.sessions.finish(s.id)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	// The path alone, since the client knows the host, under a name that we may not;
	// and the path as it was sent, whatever has been taken off it since.
	path := r.URL.EscapedPath()
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = u.EscapedPath()
	}
	if s.event("endpoint", []byte("/"+strings.TrimLeft(path, "/")+"?"+sseParam+"="+s.id)) != nil {
		return
	}
	session, err := chosenServer(r).Connect(r.Context(), s, nil)
	if err != nil {
		h.log.ErrorContext(r.Context(), "an SSE session could not begin", "error", err)
		return
	}
	w.stayAlive(h.keepAlive, h.keepAlive)
	select {
	case <-r.Context().Done():
	case <-s.done:
	}
	h.calls.end(s.id, caller)
	_ = s.Close() // so that nothing is written any more
	_ = session.Close()
}

// takeSSE takes a message for a session.
func (h *Handler) takeSSE(w *response, r *http.Request, caller access.Caller, id string) {
	s := h.sse.get(id)
	switch {
	case s == nil:
		http.Error(w, "session not found: its stream has ended; open another", http.StatusNotFound)
		return
	case s.identity != Identity(caller):
		w.refuse(http.StatusForbidden, otherToken)
		return
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		w.refuse(http.StatusUnsupportedMediaType, "the Content-Type of a message is application/json")
		return
	}
	body, err := readBody(w, r, h.maxBody)
	if err != nil {
		w.refuse(http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	m, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		w.refuse(http.StatusBadRequest, "the body is not a JSON-RPC message: "+clip(err.Error()))
		return
	}
	if req, ok := m.(*jsonrpc.Request); ok {
		// What the SDK's own transports say of a request.
		req.Extra = &mcp.RequestExtra{Header: r.Header, TokenInfo: infoOf(r)}
	}
	h.sessions.use(id, caller)
	select {
	case s.incoming <- m:
		w.WriteHeader(http.StatusAccepted)
	case <-s.done:
		http.Error(w, "session not found: its stream has ended; open another", http.StatusNotFound)
	case <-r.Context().Done():
	}
}
