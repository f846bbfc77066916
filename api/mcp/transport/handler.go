// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// Options configure a handler. A duration or size that is zero takes its default.
type Options struct {
	// Caller returns who makes the request that a context belongs to, as the guard in
	// front found it. Required. Its error is answered with 401.
	Caller func(context.Context) (access.Caller, error)
	// Server returns the server for a request, one that was added. Required. Its error is
	// answered with 404.
	Server func(*http.Request, access.Caller) (*mcp.Server, error)
	// Lacking returns why a caller is not to call a tool and has to hear of it by HTTP, with the header WWW-Authenticate
	// of that answer, a 403; nil: it may call, or the tool says no. Nil itself: there is no such tool.
	Lacking func(*http.Request, access.Caller, string) (challenge string, err error)
	Logger  *slog.Logger // nil: discard
	// MaxBody is the most bytes of one message; 16 MiB.
	MaxBody int64
	// SessionTimeout ends a session without a call for so long; 24 h.
	SessionTimeout time.Duration
	// KeepAlive is how long a stream may be silent before a comment shows that it is alive; 15 s.
	KeepAlive time.Duration
	// ReturnGrace is how long the calls of a client whose connection broke continue, so that it
	// may come back for the answers where its transport can; 30 s.
	ReturnGrace time.Duration
	// TaskAfter is how long a call takes before a client that knows of tasks gets one; 10 s.
	TaskAfter time.Duration
	// Memory bounds what requests and their answers hold; nil: a budget of its own.
	Memory *budget.Budget
}

const (
	defaultMaxBody        = 16 << 20
	defaultSessionTimeout = 24 * time.Hour
	defaultKeepAlive      = 15 * time.Second
	defaultReturnGrace    = 30 * time.Second
)

// Handler serves MCP over HTTP. Servers are added by Add before the first request; after that it
// is safe for concurrent use.
type Handler struct {
	memory   *budget.Budget
	caller   func(context.Context) (access.Caller, error)
	serverOf func(*http.Request, access.Caller) (*mcp.Server, error)
	lacking  func(*http.Request, access.Caller, string) (string, error)
	servers  []*mcp.Server
	log      *slog.Logger
	maxBody  int64
	calls    *calls

	sessions    *sessions
	streams     *streams
	sse         *sse
	keepAlive   time.Duration
	returnGrace time.Duration
	tasks       *tasks

	modern http.Handler
	legacy http.Handler
}

// New returns a handler without servers. It starts nothing; sessions begin with requests. A
// missing option is fault.Invalid.
func New(o Options) (*Handler, error) {
	switch {
	case o.Caller == nil:
		return nil, fault.InvalidField("caller", "is missing")
	case o.Server == nil:
		return nil, fault.InvalidField("server", "is missing")
	}
	h := &Handler{
		caller: o.Caller, serverOf: o.Server, lacking: o.Lacking, log: o.Logger, memory: o.Memory, maxBody: o.MaxBody,
		keepAlive: o.KeepAlive, returnGrace: o.ReturnGrace, calls: newCalls(), sse: newSSE(),
	}
	if h.memory == nil {
		h.memory = budget.New(budget.Options{})
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.maxBody <= 0 {
		h.maxBody = defaultMaxBody
	}
	if o.SessionTimeout <= 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if h.keepAlive <= 0 {
		h.keepAlive = defaultKeepAlive
	}
	if h.returnGrace <= 0 {
		h.returnGrace = defaultReturnGrace
	}
	if o.TaskAfter <= 0 {
		o.TaskAfter = taskAfter
	}
	h.tasks = newTasks(o.TaskAfter, h.log)
	h.sessions = newSessions(h.calls.busy, h.endSession)
	h.streams = newStreams(h.sessions)
	// The guard has checked Host and Origin, for names that the SDK cannot know.
	h.modern = bound(mcp.NewStreamableHTTPHandler(chosenServer, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: SDKLogger(h.log),
	}))
	h.legacy = bound(mcp.NewStreamableHTTPHandler(chosenServer, &mcp.StreamableHTTPOptions{
		SessionTimeout: o.SessionTimeout, EventStore: h.streams, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: SDKLogger(h.log),
	}))
	return h, nil
}

// Add makes the handler serve s, with tasks that records find again after a restart. extend, if
// not nil, adds middleware around that for tasks; a panic in either is caught.
func (h *Handler) Add(s *mcp.Server, records Records, extend func(*mcp.Server)) {
	h.servers = append(h.servers, s)
	h.tasks.serve(s, records)
	if extend != nil {
		extend(s)
	}
	s.AddReceivingMiddleware(h.catchPanics) // around all others
}

// Close ends every call and every session, with their streams. Commands that calls wait for keep
// running. Later calls are answered with an error. It may be called twice.
func (h *Handler) Close() {
	// A session that is closed answers nothing any more.
	grace := time.NewTimer(answerGrace)
	defer grace.Stop()
	select {
	case <-h.calls.stop():
	case <-grace.C: // a client that does not read, or a subscription
	}
	h.tasks.close()
	for _, s := range h.servers {
		for session := range s.Sessions() {
			_ = session.Close() // it is gone either way
		}
	}
}

// answerGrace is how long Close waits for its answers to be written.
const answerGrace = 2 * time.Second

type (
	callerKey struct{}
	serverKey struct{}
)

// endSession ends a session that is open.
func (h *Handler) endSession(id string) {
	for _, s := range h.servers {
		for session := range s.Sessions() {
			if session.ID() == id {
				_ = session.Close() // it is gone either way
			}
		}
	}
}

// ServeHTTP serves one request of either era.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w := newResponse(rw, cancel)
	defer w.end()
	caller, err := h.caller(ctx)
	if err != nil {
		e := fault.As(err)
		w.Header().Set("WWW-Authenticate", `Bearer realm="sandpit"`)
		w.refuse(http.StatusUnauthorized, strings.TrimSuffix(e.Message+"; "+e.Remedy, "; "))
		return
	}
	server, err := h.serverOf(r, caller)
	if err != nil {
		e := fault.As(err)
		w.refuse(http.StatusNotFound, e.Message+"; "+e.Remedy)
		return
	}
	ctx = context.WithValue(ctx, callerKey{}, caller)
	r = r.Clone(context.WithValue(ctx, serverKey{}, server))
	session := r.Header.Get(sessionHeader)
	h.sessions.use(session, caller)
	switch r.Method {
	case http.MethodPost:
		defer h.calls.post()()
		h.post(w, r, caller)
	case http.MethodGet:
		h.get(w, r, caller, session)
	case http.MethodDelete:
		if session == "" && saysModern(r) {
			w.notAllowed(http.MethodPost)
			return
		}
		h.calls.end(session, caller)
		h.legacy.ServeHTTP(w, r)
	default:
		w.notAllowed("GET, POST, DELETE")
	}
}

// notAllowed refuses a request's method.
func (w *response) notAllowed(allow string) {
	w.Header().Set("Allow", allow)
	w.refuse(http.StatusMethodNotAllowed, "MCP has no such request at this address; it takes "+allow)
}

// post handles a message.
func (h *Handler) post(w *response, r *http.Request, caller access.Caller) {
	r, room, ok := h.admit(w, r, caller)
	if !ok {
		return
	}
	defer room.Close()
	if r.URL.RawQuery != "" && r.Header.Get(sessionHeader) == "" {
		if id := r.URL.Query().Get(sseParam); id != "" {
			h.takeSSE(w, r, caller, id)
			return
		}
	}
	modern, m, err := open(w, r, h.maxBody)
	if err != nil {
		w.refuse(http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	if h.lacking != nil && caller.Issuer != "" && !h.mayCall(w, r, caller, modern) {
		return
	}
	if modern || r.Header.Get(sessionHeader) != "" {
		// Not where a session is opened: its id goes out with the headers.
		body := &whole{ReadCloser: r.Body, then: func() { w.stayAlive(h.keepAlive, h.keepAlive) }}
		r.Body, w.message = body, body.message
	}
	if modern {
		if checkName(w, r, &m) {
			h.modern.ServeHTTP(w, r)
		}
		return
	}
	if m.Method == methodInit {
		admitted, err := h.sessions.admit(caller)
		if err != nil {
			w.refuse(http.StatusTooManyRequests, err.Error())
			return
		}
		defer admitted()
	}
	d := &delivery{grace: h.returnGrace, abandon: h.calls.abandon}
	d.attach()
	r = r.WithContext(context.WithValue(r.Context(), deliveryKey{}, d))
	h.legacy.ServeHTTP(w, r)
	d.detach(r.Context().Err() != nil)
}

// firstSign is when a stream that was opened for its own sake begins, at the
// latest: its client waits for the headers, and the SDK for an event.
const firstSign = time.Second / 2

// get opens a stream: one of a session, or again one that broke, or a session of
// HTTP+SSE.
func (h *Handler) get(w *response, r *http.Request, caller access.Caller, session string) {
	switch {
	case session != "":
		if d := h.calls.delivered(session, streamOf(r.Header.Get(lastEventHeader)), caller); d != nil {
			d.attach()
			defer func() { d.detach(r.Context().Err() != nil) }()
		}
		w.stayAlive(firstSign, h.keepAlive)
		h.legacy.ServeHTTP(w, r)
	case saysModern(r):
		w.notAllowed(http.MethodPost)
	case !acceptsEvents(r.Header.Values("Accept")):
		w.refuse(http.StatusNotAcceptable, "this is the address of an MCP server, for programs: a GET opens a stream of events, and has to accept text/event-stream")
	default:
		h.openSSE(w, r, caller)
	}
}

// acceptsEvents reports whether a request accepts a stream of events as its answer.
func acceptsEvents(accept []string) bool {
	for _, v := range accept {
		for one := range strings.SplitSeq(v, ",") {
			media, _, _ := strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*", "text/*", "text/event-stream":
				return true
			}
		}
	}
	return false
}

// chosenServer returns the server that was chosen for a request.
func chosenServer(r *http.Request) *mcp.Server {
	s, _ := r.Context().Value(serverKey{}).(*mcp.Server)
	return s
}

// bound identifies the caller to the SDK, in the only way that it has: it then refuses a
// session's id that comes with another token. The token itself goes no further than here.
func bound(next http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		if info := infoOf(r); info != nil {
			return info, nil
		}
		return nil, auth.ErrInvalidToken
	}
	checked := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer checked") // r is a clone, see ServeHTTP
		checked.ServeHTTP(w, r)
	})
}
