// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// Options is what a handler is made of.
type Options struct {
	Engine Engine // required
	// Caller tells who makes the request that a context belongs to, as the guard in
	// front found it. Required. Its error is answered with 401.
	Caller  func(context.Context) (access.Caller, error)
	Version string       // for clients to show
	Groups  []string     // of tools, beside those that are always there; see Groups
	Profile string       // of requests for which neither path nor token names one; "": ProfileSandpit
	Logger  *slog.Logger // nil: discard
	// Files makes links to files, Previews to ports; nil: there are none.
	Files     *filelink.Links
	Previews  Previews
	Artifacts Artifacts // nil: what runs left, and what is under /artifacts of sandboxes that run
	// MaxBody is the most bytes of one message; zero: 16 MiB.
	MaxBody int64
	// SessionTimeout ends a session that makes no call for so long; zero: 24 h.
	SessionTimeout time.Duration
	// KeepAlive is how long a stream may stand still before a comment shows that it
	// lives; zero: 15 s.
	KeepAlive time.Duration
	// ReturnGrace is how long the calls of a client whose connection broke go on, so
	// that it may come back for the answers where its transport can; zero: 30 s.
	ReturnGrace time.Duration
	// TaskAfter is how long a call takes before a client that knows of tasks gets one;
	// zero: 10 s.
	TaskAfter time.Duration
	// Memory bounds what requests and their answers hold; nil: a budget of its own.
	Memory *budget.Budget
	Extend Extension
}

// Extension adds to what a handler offers. It is called for every server of the SDK's
// that a handler makes, one for each profile and each kind of token.
type Extension struct {
	Options func(*mcp.ServerOptions) // changes them; nil: nothing
	Server  func(*mcp.Server)        // adds to it; nil: nothing
}

const (
	defaultMaxBody        = 16 << 20
	defaultSessionTimeout = 24 * time.Hour
	defaultKeepAlive      = 15 * time.Second
	defaultReturnGrace    = 30 * time.Second
)

// Handler serves MCP. It is safe for concurrent use.
type Handler struct {
	memory  *budget.Budget
	engine  Engine
	caller  func(context.Context) (access.Caller, error)
	log     *slog.Logger
	groups  []string
	maxBody int64
	calls   *calls

	files     *filelink.Links
	previews  Previews
	artifacts Artifacts
	skill     *skill
	cells     *cells

	sessions    *sessions
	streams     *streams
	sse         *sse
	keepAlive   time.Duration
	returnGrace time.Duration
	tasks       *tasks
	extend      Extension

	profile string           // where a request names none
	faces   map[string]faces // by profile
	modern  http.Handler
	legacy  http.Handler
}

// New makes a handler. It starts nothing; sessions begin with requests. An
// option that is missing is fault.Invalid.
func New(o Options) (*Handler, error) {
	switch {
	case o.Engine == nil:
		return nil, fault.InvalidField("engine", "is missing")
	case o.Caller == nil:
		return nil, fault.InvalidField("caller", "is missing")
	}
	if err := CheckGroups("groups", o.Groups); err != nil {
		return nil, err
	}
	if err := CheckProfile("profile", o.Profile); err != nil {
		return nil, err
	}
	h := &Handler{groups: switchedOn(o.Groups), engine: o.Engine, caller: o.Caller, log: o.Logger, maxBody: o.MaxBody, calls: newCalls(), memory: o.Memory}
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
	if h.profile = o.Profile; h.profile == "" {
		h.profile = ProfileSandpit
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	if h.keepAlive = o.KeepAlive; h.keepAlive <= 0 {
		h.keepAlive = defaultKeepAlive
	}
	if h.returnGrace = o.ReturnGrace; h.returnGrace <= 0 {
		h.returnGrace = defaultReturnGrace
	}
	h.files, h.previews, h.artifacts, h.cells = o.Files, o.Previews, o.Artifacts, new(cells)
	if h.artifacts == nil {
		h.artifacts = recentArtifacts{h.engine}
	}
	var err error
	if h.skill, err = readSkill(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the skill that is built in cannot be read")
	}
	if o.TaskAfter <= 0 {
		o.TaskAfter = taskAfter
	}
	h.extend = o.Extend
	h.sse, h.tasks = newSSE(), newTasks(o.TaskAfter, h.log)
	h.tasks.revive = revive
	h.sessions = newSessions(h.calls.busy, h.endSession)
	h.streams = newStreams(h.sessions)
	h.openProfiles(o.Version)
	// The guard has checked Host and Origin, for names that the SDK cannot know.
	h.modern = h.bound(mcp.NewStreamableHTTPHandler(h.serverOf, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: h.log,
	}))
	h.legacy = h.bound(mcp.NewStreamableHTTPHandler(h.serverOf, &mcp.StreamableHTTPOptions{
		SessionTimeout: o.SessionTimeout, EventStore: h.streams, MaxRequestBodyBytes: h.maxBody,
		DisableLocalhostProtection: true, Logger: h.log,
	}))
	return h, nil
}

// Close ends every call and every session, with the streams that hang on them.
// Commands that calls wait for go on running. Give it to
// http.Server.RegisterOnShutdown: else an idle client keeps the server from
// ending. Calls that come later are answered with an error. It may be called twice.
func (h *Handler) Close() {
	// A session that is closed answers nothing any more.
	grace := time.NewTimer(answerGrace)
	defer grace.Stop()
	select {
	case <-h.calls.stop():
	case <-grace.C: // a client that does not read, or a subscription
	}
	h.cells.stop()
	h.tasks.close()
	for _, s := range h.servers() {
		for session := range s.Sessions() {
			_ = session.Close() // it is gone either way
		}
	}
}

// answerGrace is how long Close waits for its answers to be written.
const answerGrace = 2 * time.Second

type (
	callerKey  struct{}
	profileKey struct{}
)

// endSession ends a session that is open.
func (h *Handler) endSession(id string) {
	for _, s := range h.servers() {
		for session := range s.Sessions() {
			if session.ID() == id {
				_ = session.Close() // it is gone either way
			}
		}
	}
}

// ServeHTTP serves one request of either era.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if c, err := h.caller(r.Context()); err == nil && h.serveRun(rw, r, c) {
		return
	}
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
	name, err := h.profileOf(r, caller)
	if err != nil {
		e := fault.As(err)
		w.refuse(http.StatusNotFound, e.Message+"; "+e.Remedy)
		return
	}
	ctx = context.WithValue(ctx, callerKey{}, caller)
	r = r.Clone(context.WithValue(ctx, profileKey{}, name))
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

// post takes a message.
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
	if modern || r.Header.Get(sessionHeader) != "" {
		// Not where a session is opened: its id goes out with the headers.
		r.Body = &whole{r.Body, func() { w.stayAlive(h.keepAlive, h.keepAlive) }}
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

// acceptsEvents tells whether a request takes a stream of events for an answer.
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

// serverOf chooses the tools that a caller sees.
func (h *Handler) serverOf(r *http.Request) *mcp.Server {
	name, _ := r.Context().Value(profileKey{}).(string)
	f := h.faces[name]
	if c, ok := r.Context().Value(callerKey{}).(access.Caller); ok && c.May(access.SandboxesWrite) {
		return f.all
	}
	return f.readOnly
}

// Where a call's token info holds the caller, and the way back of its answer.
const (
	extraCaller   = "caller"
	extraDelivery = "delivery"
	extraRoom     = "room"
)

// identity is what makes two callers the same for a session.
func identity(c access.Caller) string {
	return strings.Join([]string{c.Project, c.TokenID, c.Actor}, "\x00")
}

// bound tells the SDK who calls, in the only way that it has: it then refuses a
// session's id that comes with another token. The token itself goes no further
// than here.
func (h *Handler) bound(next http.Handler) http.Handler {
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

// infoOf is what calls learn of the request that they came with.
func infoOf(r *http.Request) *auth.TokenInfo {
	c, ok := r.Context().Value(callerKey{}).(access.Caller)
	if !ok {
		return nil
	}
	return &auth.TokenInfo{UserID: identity(c), Extra: map[string]any{
		extraCaller: c, extraDelivery: deliveryOf(r.Context()), extraRequest: addressOf(r), extraRoom: r.Context().Value(roomKey{}),
	}}
}
