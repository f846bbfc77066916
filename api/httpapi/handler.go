// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/audit"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/internal/spelling"
	"sandpit.dev/sandbox"
)

// Options is what the handler of a coat is made of. Zero fields take the value named behind
// them.
type Options struct {
	Guard *guard.Guard // required
	// Via names the coat in the events of what its callers do. Required.
	Via string
	// Credentials are the places where a caller's token may stand; nil: the header Authorization
	// alone. See [guard.Door].
	Credentials []guard.Credential
	// Bases are the paths below which the operations are found; nil: the root alone.
	Bases []string
	// MaxBody is the most bytes of a body in JSON, unless its operation has a bound of its
	// own; 1 MiB.
	MaxBody int64
	// Hint is the remedy of the error for a path at which nothing is served; none.
	Hint string
	// Serve serves a call whose caller is known; nil: [Operation.Serve]. It is where a coat
	// does what it does for every operation, with what its operations' Extension says.
	Serve func(*Operation, *Call) error
	// Error answers with an error; nil: [guard.Error], which is application/problem+json. A
	// wire that has errors of its own uses [guard.ErrorAs]. What the guard itself refuses is
	// answered by it, too.
	Error func(http.ResponseWriter, *http.Request, error)
	// StreamError returns the last event of a stream that err breaks off; nil: an event
	// "error" with what [guard.Problem] shows of it.
	StreamError func(ctx context.Context, err error) (name string, data any)
	// Lenient has parameters and fields that an operation does not have be ignored, for wires whose clients send what
	// servers may not know. All else that is wrong is refused as ever.
	Lenient bool
	// Memory bounds what large answers and bodies hold; nil: a budget of its own.
	Memory *budget.Budget
	// Heartbeat is how often a quiet event stream, or a WebSocket, says that it is alive; 15 s.
	Heartbeat time.Duration
	// Stall is how long a client may take nothing of an answer before its connection is cut;
	// 30 s. The guard has the same for bodies.
	Stall time.Duration
}

const (
	defaultMaxBody   = 1 << 20
	defaultHeartbeat = 15 * time.Second
)

// Handler serves the operations of a coat. It is safe for concurrent use.
type Handler struct {
	o       Options
	door    guard.Door
	handler http.Handler

	life  context.Context // ends when the handler is closed; no request's
	close context.CancelCauseFunc
}

// New returns the handler of a coat's operations. It starts nothing. Operations that cannot be
// served as they are written are fault.Internal.
func New(o Options, ops []Operation) (*Handler, error) {
	if o.Guard == nil || o.Via == "" {
		return nil, fault.New(fault.Internal, "httpapi.New needs a guard and the coat's name")
	}
	door := guard.Door{Via: o.Via, Credentials: o.Credentials, Error: o.Error}
	if err := door.Check(); err != nil {
		return nil, err
	}
	for _, op := range ops {
		if err := op.check(); err != nil {
			return nil, err
		}
	}
	if len(o.Bases) == 0 {
		o.Bases = []string{""}
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Serve == nil {
		o.Serve = (*Operation).Serve
	}
	if o.Error == nil {
		o.Error = guard.Error
	}
	if o.StreamError == nil {
		o.StreamError = problemEvent
	}
	if o.Memory == nil {
		o.Memory = budget.New(budget.Options{})
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Stall <= 0 {
		o.Stall = guard.DefaultStall
	}
	h := &Handler{o: o, door: door}
	h.life, h.close = context.WithCancelCause(context.Background())
	h.handler = h.routes(ops)
	return h, nil
}

func problemEvent(ctx context.Context, err error) (string, any) {
	p, _ := guard.Problem(err, guard.RequestID(ctx))
	return "error", &p
}

// ServeHTTP answers a request by the operation that its method and path name. It must see paths
// as they were sent: a mux that cleans them first answers redirects where a refusal is due.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }

// Close ends the contexts that [Call.Bound] returned, and the WebSockets: a server's shutdown
// does not wait for these, and would wait long for what waits for a command. It may be called
// twice.
func (h *Handler) Close() {
	h.close(fault.New(fault.Unavailable, "the server is stopping").
		WithRemedy("ask again when it is back; sandboxes and their commands go on running"))
}

// Func returns a handler for requests that no operation is for. It has passed no guard: its
// calls have no caller and no room.
func (h *Handler) Func(serve func(*Call) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(&Call{W: w, R: r, Status: http.StatusOK, handler: h}); err != nil {
			h.o.Error(w, r, err)
		}
	})
}

// serve returns the handler of one operation.
func (h *Handler) serve(o Operation) http.Handler {
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &Call{W: w, R: r, Status: o.Status, handler: h, op: &o}
		if !o.open {
			caller, err := guard.Caller(r.Context())
			if err != nil {
				h.o.Error(w, r, err)
				return
			}
			c.Caller = caller
		}
		if told := audit.Of(r.Context()); told != nil && (!o.open || o.told) {
			told.Name, told.Recorded, told.Watched, told.Target = o.ID, o.told || o.reads || o.Method != http.MethodGet, o.watched, r.PathValue("id")
		}
		c.Room = h.o.Memory.Open(c.Caller.Project)
		defer c.Room.Close()
		if err := h.o.Serve(&o, c); err != nil {
			h.o.Error(w, r, err)
		}
	})
	if o.open {
		return h.o.Guard.Open(h.door, serve)
	}
	return h.o.Guard.Through(h.door, serve)
}

// routes returns the handler of all operations.
func (h *Handler) routes(ops []Operation) http.Handler {
	known := http.NewServeMux()   // by method and path
	methods := http.NewServeMux() // by path: which methods there are
	allowed := make(map[string][]string)
	for _, o := range ops {
		allowed[o.Path] = append(allowed[o.Path], o.Method)
		if o.Method == http.MethodGet {
			allowed[o.Path] = append(allowed[o.Path], http.MethodHead)
		}
		for _, base := range h.o.Bases {
			known.Handle(o.Method+" "+base+o.Path, h.serve(o))
		}
	}
	for path, list := range allowed {
		slices.Sort(list)
		allow := strings.Join(list, ", ")
		for _, base := range h.o.Bases {
			methods.HandleFunc(base+path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Allow", allow)
				h.o.Error(w, r, guard.WithStatus(http.StatusMethodNotAllowed,
					fault.New(fault.Malformed, "%s %s is not served; the path has %s", sandbox.Clip(r.Method, 20), shownPath(r), allow)))
			})
		}
	}
	roots := collections(ops)
	methods.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.o.Error(w, r, fault.New(fault.NotFound, "nothing is served at %s%s", shownPath(r), h.meantPath(r.URL.Path, roots)).WithRemedy("%s", h.o.Hint))
	})
	unknown := h.o.Guard.Through(h.door, methods)
	crooked := h.o.Guard.Through(h.door, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.o.Error(w, r, fault.InvalidField("path", "%s has an empty segment, or one that is . or ..", shownPath(r)).
			WithRemedy("write the path without them; an absolute path goes into the query: ?path=/etc/hosts"))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would answer these with a redirect to another path, which is another
		// file, and not the one that was asked for.
		if !straight(r.URL.EscapedPath()) {
			crooked.ServeHTTP(w, r)
			return
		}
		if _, pattern := known.Handler(r); pattern == "" {
			unknown.ServeHTTP(w, r)
			return
		}
		known.ServeHTTP(w, r)
	})
}

// straight reports whether a path can be matched as it is.
func straight(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for seg := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		if seg == "" || seg == "." || seg == ".." {
			return path == "/"
		}
	}
	return true
}

// collections returns the first parts of all operations' paths, in their order.
func collections(ops []Operation) []string {
	var out []string
	for _, o := range ops {
		first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
		if !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}

// meantPath returns an ending for a message about a path at which nothing is served: the
// collection that was likely meant, or where it is.
func (h *Handler) meantPath(path string, known []string) string {
	base, rest := h.o.Bases[0], strings.Trim(path, "/")
	for _, b := range h.o.Bases {
		if under, ok := strings.CutPrefix(path, b+"/"); ok {
			base, rest = b, under
		}
	}
	first, _, _ := strings.Cut(rest, "/")
	meant := spelling.Nearest(first, known)
	if first == "" || meant == "" || strings.HasPrefix(path, base+"/"+meant+"/") {
		return ""
	}
	return "; did you mean " + base + "/" + meant + "?"
}

func shownPath(r *http.Request) string { return sandbox.Clip(r.URL.EscapedPath(), 200) }
