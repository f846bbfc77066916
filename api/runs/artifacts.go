// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mediatype"
	"sandpit.dev/sandbox"
)

// Artifacts lists and opens artifacts; *runs.Runner implements it.
type Artifacts interface {
	ArtifactRun(ctx context.Context, c access.Caller, of, run string) (*sandbox.Run, error)
	OpenArtifact(r *sandbox.Run, path string) (*os.File, sandbox.Artifact, error)
}

// Handler serves artifacts. What a sandbox wrote is never shown as a page of the
// server's: a browser takes it for data, in a sandbox of its own, and what could run
// scripts is saved and not shown.
type Handler struct {
	Artifacts Artifacts
	Links     *filelink.Links
	// Caller tells whose token a request has.
	Caller func(context.Context) (access.Caller, error)
	// Refuse answers with an error.
	Refuse func(http.ResponseWriter, *http.Request, error)
	Now    func() time.Time // nil: time.Now
}

// TokenParam is the parameter of the query that holds a link's token.
const TokenParam = "token"

// IsLink reports whether a request comes with a link's token, and needs no other.
func IsLink(r *http.Request) bool { return r.URL.Query().Has(TokenParam) }

// grantOf is what a link's token says of a run: no sandbox's id has a colon.
func grantOf(run string) string { return "run:" + run }

// Link returns a link to an artifact that is good for whoever has it, as whoever sent r
// reaches the server. There has to be such an artifact.
func Link(l *filelink.Links, r *http.Request, run *sandbox.Run, artifact string, until time.Time) string {
	scheme := "http"
	// Whoever lies about it spoils only its own answer.
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	token := l.Token(filelink.Grant{Project: run.Project, Sandbox: grantOf(run.ID), Path: artifact, Expires: until})
	return scheme + "://" + r.Host + Address(run, artifact) + "?" + TokenParam + "=" + url.QueryEscape(token)
}

// ServeHTTP serves one artifact, or lists those of a run.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address may hold a token
	if err := h.serve(w, r); err != nil {
		h.Refuse(w, r, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.New(fault.Unsupported, "artifacts can only be read").WithRemedy("write below %s inside the sandbox", sandbox.Artifacts)
	}
	of, run, file, err := parse(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	caller, err := h.caller(r, run, file)
	if err != nil {
		return err
	}
	found, err := h.Artifacts.ArtifactRun(r.Context(), caller, of, run)
	if err != nil {
		return err
	}
	if file == "" || strings.HasSuffix(file, "/") {
		return index(w, found, file)
	}
	f, a, err := h.Artifacts.OpenArtifact(found, file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := w.Header()
	kind, inline := mediatype.Of(file)
	head.Set("Content-Type", kind)
	disposition := "attachment"
	if inline && r.URL.Query().Get("download") == "" {
		disposition = "inline"
	}
	head.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(file)}))
	head.Set("Content-Security-Policy", "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; media-src 'self'")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "private, no-cache")
	head.Set("ETag", strconv.Quote(a.SHA256))
	http.ServeContent(w, r, "", found.EndedAt, f)
	return nil
}

// caller is who asks: whom a token names, or who was given a link to this very file.
func (h *Handler) caller(r *http.Request, run, file string) (access.Caller, error) {
	if !IsLink(r) {
		return h.Caller(r.Context())
	}
	now := time.Now
	if h.Now != nil {
		now = h.Now
	}
	g, err := h.Links.Read(r.URL.Query().Get(TokenParam), now())
	if err != nil {
		return access.Caller{}, err
	}
	if g.Write || g.Sandbox != grantOf(run) || g.Path != file || file == "" {
		return access.Caller{}, fault.New(fault.Unauthenticated, "the link is for another file").
			WithRemedy("use the address as it was given to you")
	}
	return access.Caller{Project: g.Project, Actor: "link", Via: "link", Scopes: []access.Scope{access.SandboxesRead}}, nil
}

// parse takes an escaped path apart. No part of a file's path may be one that a client
// or a proxy would have taken out.
func parse(escaped string) (of, run, file string, err error) {
	none := func() (string, string, string, error) {
		return "", "", "", fault.New(fault.NotFound, "there is no artifact at %q", sandbox.Clip(escaped, 80)).
			WithRemedy("artifacts are at %s<identifier>/<run id, or latest>/<path>", Root)
	}
	rest, ok := strings.CutPrefix(escaped, Root)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 {
		return none()
	}
	for i, p := range parts {
		last := i == len(parts)-1
		if parts[i], err = url.PathUnescape(p); err != nil || parts[i] == "" && !last || parts[i] == "." || parts[i] == ".." ||
			strings.ContainsAny(parts[i], "/\x00") {
			return none()
		}
	}
	return parts[0], parts[1], strings.Join(parts[2:], "/"), nil
}

// index lists the artifacts of a run, or those below a directory.
func index(w http.ResponseWriter, r *sandbox.Run, dir string) error {
	if !r.ArtifactsKept {
		return fault.New(fault.NotFound, "the run has no artifacts: %s", why(r))
	}
	out := v1.ArtifactList{RunID: r.ID, Identifier: r.Identifier, Artifacts: []v1.Artifact{}}
	for _, a := range r.Artifacts {
		if strings.HasPrefix(a.Path, dir) {
			out.Artifacts = append(out.Artifacts, v1.Artifact{Path: a.Path, Size: a.Size, SHA256: a.SHA256, URL: Address(r, a.Path)})
		}
	}
	if dir != "" && len(out.Artifacts) == 0 {
		return fault.New(fault.NotFound, "the run has no artifacts below %q", sandbox.Clip(dir, 200))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(out) // the client went away: nothing to tell
	return nil
}

func why(r *sandbox.Run) string {
	switch {
	case r.ArtifactsError != "":
		return r.ArtifactsError
	case !r.State.Ended():
		return "it has not ended"
	}
	return "none were copied out"
}
