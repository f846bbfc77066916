// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"slices"
	"strings"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// bases are where the same routes are found.
func bases() []string { return []string{"/v1", "/api/v1"} }

// routes makes the handler of all operations.
func (a *API) routes(ops []operation, g *guard.Guard) http.Handler {
	known := http.NewServeMux()   // by method and path
	methods := http.NewServeMux() // by path: which methods there are
	allowed := make(map[string][]string)
	for _, o := range ops {
		allowed[o.path] = append(allowed[o.path], o.method)
		if o.method == http.MethodGet {
			allowed[o.path] = append(allowed[o.path], http.MethodHead)
		}
		for _, base := range bases() {
			known.Handle(o.method+" "+base+o.path, a.guarded(o, g))
		}
	}
	roots := collections(ops)
	for path, list := range allowed {
		slices.Sort(list)
		allow := strings.Join(list, ", ")
		for _, base := range bases() {
			methods.HandleFunc(base+path, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Allow", allow)
				guard.Error(w, r, guard.WithStatus(http.StatusMethodNotAllowed,
					fault.New(fault.Malformed, "%s %s is not served; the path has %s", sandbox.Clip(r.Method, 20), shownPath(r), allow)))
			})
		}
	}
	methods.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		guard.Error(w, r, fault.New(fault.NotFound, "nothing is served at %s%s", shownPath(r), meantPath(r.URL.Path, roots)).
			WithRemedy("see /v1/openapi.json for what there is; MCP is at /mcp, and /connect says how to set up a client"))
	})
	unknown := g.Wrap(via, methods)
	crooked := g.Wrap(via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard.Error(w, r, fault.InvalidField("path", "%s has an empty segment, or one that is . or ..", shownPath(r)).
			WithRemedy("write the path without them; an absolute path goes into the query: ?path=/etc/hosts"))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would answer these with a redirect to another path, which is
		// another file: nobody asked for that.
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

const via = "rest"

// straight tells whether a path can be matched as it is.
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

// collections are the first parts of all routes' paths, in their order.
func collections(ops []operation) []string {
	var out []string
	for _, o := range ops {
		first, _, _ := strings.Cut(strings.TrimPrefix(o.path, "/"), "/")
		if !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	return out
}

// meantPath is an ending for a message about a path at which nothing is served: the
// collection that was likely meant, or where it is.
func meantPath(path string, known []string) string {
	base, rest := bases()[0], strings.Trim(path, "/")
	for _, b := range bases() {
		if under, ok := strings.CutPrefix(path, b+"/"); ok {
			base, rest = b, under
		}
	}
	first, _, _ := strings.Cut(rest, "/")
	meant := nearest(first, known)
	if first == "" || meant == "" || strings.HasPrefix(path, base+"/"+meant+"/") {
		return ""
	}
	return "; did you mean " + base + "/" + meant + "?"
}

func shownPath(r *http.Request) string { return sandbox.Clip(r.URL.EscapedPath(), 200) }

// guarded makes one operation's handler.
func (a *API) guarded(o operation, g *guard.Guard) http.Handler {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, r: r, status: o.status, stall: a.stall}
		if !o.open {
			caller, err := guard.Caller(r.Context())
			if err != nil {
				guard.Error(w, r, err)
				return
			}
			c.caller = caller
		}
		c.room = a.memory.Open(c.caller.Project)
		defer c.room.Close()
		var err error
		if keys := r.Header[v1.IdempotencyKey]; o.key != nil && a.keys != nil && len(keys) > 0 {
			err = a.serveKeyed(&o, c, keys)
		} else {
			err = o.serve(c)
		}
		if err != nil {
			guard.Error(w, r, err)
		}
	})
	if o.open {
		return g.WrapOpen(h)
	}
	return g.Wrap(via, h)
}
