// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"embed"
	"html"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"sandpit.dev/fault"
)

// Root is the path that all pages are below.
const Root = "/console/"

const assetsRoot = Root + "assets/"

//go:embed dist
var dist embed.FS

// Options configure the console.
type Options struct {
	// Frames returns where the page that answers r may load frames from, as a policy names it; "" or nil: from nowhere.
	Frames func(r *http.Request) string
}

// Handler serves the console's files. It is safe for concurrent use.
type Handler struct {
	frames func(*http.Request) string
	page   string
	assets map[string]asset // by name
}

// asset is a file as it is built: compressed.
type asset struct {
	packed []byte
	kind   string // the media type
}

// New returns the handler of [Root] and below.
func New(o Options) (*Handler, error) {
	h := &Handler{frames: o.Frames, assets: make(map[string]asset)}
	if h.frames == nil {
		h.frames = func(*http.Request) string { return "" }
	}
	page, err := dist.ReadFile("dist/index.html")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the console is not in this program")
	}
	h.page = string(page)
	for _, mark := range []string{nonceMark, framesMark} {
		if !strings.Contains(h.page, mark) {
			return nil, fault.New(fault.Internal, "the console's page has no place for %s", mark)
		}
	}
	files, err := fs.Glob(dist, "dist/*.gz")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the console's files cannot be read")
	}
	for _, name := range files {
		packed, err := dist.ReadFile(name)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the console's file %s cannot be read", name)
		}
		name = strings.TrimSuffix(path.Base(name), ".gz")
		h.assets[name] = asset{packed, kinds()[path.Ext(name)]}
	}
	return h, nil
}

func kinds() map[string]string {
	return map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8"}
}

// nonceMark is where the page has the nonce of an answer, and framesMark where it says from where it may load frames.
const (
	nonceMark  = "{{nonce}}"
	framesMark = "{{frames}}"
)

// policy returns what a page may do. Style elements need the nonce: the terminal makes some. Frames are of previews alone.
func policy(nonce, frames string) string {
	if frames != "" {
		frames = "frame-src " + frames + "; "
	}
	return frames + "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce + "'; img-src 'self' data: blob:; connect-src 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
}

// ServeHTTP answers with a file, or at every other address below [Root] with the page: which page that is, its script says.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console is read by GET", http.StatusMethodNotAllowed)
		return
	}
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	if name, ok := strings.CutPrefix(r.URL.Path, assetsRoot); ok {
		h.asset(w, r, name)
		return
	}
	nonce, frames := rand.Text(), h.frames(r)
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", policy(nonce, frames))
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), clipboard-read=()")
	head.Set("Cache-Control", "no-store")
	_, _ = strings.NewReplacer(nonceMark, nonce, framesMark, html.EscapeString(frames)).WriteString(w, h.page) // the client went away: nothing to report
}

func (h *Handler) asset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := h.assets[name]
	if !ok {
		http.Error(w, "the console has no such file; a page of an older build names it: load the page again", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Content-Type", a.kind)
	head.Set("Cache-Control", "public, max-age=31536000, immutable")
	head.Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		head.Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.packed)
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(a.packed))
	if err == nil {
		_, err = io.Copy(w, z) // a few hundred KB, by clients that no browser is
	}
	_ = err // the client went away: the bytes are this program's own
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
