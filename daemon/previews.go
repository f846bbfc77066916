// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/internal/atomicfile"
	"sandpit.dev/network/preview"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// PreviewKeyFile is the file in the data directory that holds the key by which
// links to previews and files, and tokens of single sandboxes, are signed. Without it all that
// were made are invalid.
const PreviewKeyFile = "preview-key"

// links makes and reads links to ports and links to files.
type links struct {
	ports *preview.Links
	files *filelink.Links
	key   []byte // of both, and of tokens for single sandboxes
}

// openLinks reads the key of links, and creates it if it is missing.
func openLinks(cfg Config) (links, error) {
	key, err := linkKey(cfg)
	if err != nil {
		return links{}, err
	}
	ports, err := preview.NewLinks(key, cfg.Preview.Domain)
	if err != nil {
		return links{}, err
	}
	files, err := filelink.New(key)
	return links{ports, files, key}, err
}

func linkKey(cfg Config) ([]byte, error) {
	path := filepath.Join(cfg.Data, PreviewKeyFile)
	key, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key = make([]byte, preview.KeySize)
		_, _ = rand.Read(key) // never fails, see crypto/rand
		if err := atomicfile.Write(path, key, 0o600); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "the file %s cannot be written", path)
		}
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "the file %s cannot be read", path)
	case len(key) != preview.KeySize:
		return nil, fault.New(fault.Invalid, "the file %s has %d bytes and is no key", path, len(key)).
			WithRemedy("remove the file: a new key is made at the next start, and links that were made end")
	}
	return key, nil
}

// newPreviews returns the proxy to ports.
func newPreviews(links *preview.Links, doors *ports.Service, tokens credentials, g *guard.Guard, framers preview.Framers, log *slog.Logger) (*preview.Proxy, error) {
	return preview.New(preview.Options{
		Links: links, Sandboxes: byLink{doors}, Tokens: tokens, Guessed: g.Guessed, Framers: framers, Logger: log,
		Dial: func(ctx context.Context, c access.Caller, id string, port int) (net.Conn, error) {
			nc, err := doors.DialPort(ctx, c, id, port)
			if err != nil {
				return nil, err // and not a nil pointer in an interface
			}
			return nc, nil
		},
		Problem: func(err error, status int) (int, []byte) {
			if status != 0 {
				err = guard.WithStatus(status, err)
			}
			p, _ := guard.Problem(err, "")
			body, err := json.Marshal(p)
			if err != nil {
				body = []byte("{}") // cannot be: it is plain text and numbers
			}
			return p.Status, body
		},
	})
}

// byLink is the ports behind links: its caller has shown a valid one, or sees what is public.
type byLink struct{ *ports.Service }

func (e byLink) ReachPreview(ctx context.Context, c access.Caller, id string) error {
	if c.Actor != preview.PublicActor {
		guard.Proven(ctx)
	}
	return e.Service.ReachPreview(ctx, c, id)
}

func (e byLink) SeePort(ctx context.Context, id string, port int) (preview.Seen, context.Context, func(), error) {
	s, valid, release, err := e.Service.See(ctx, sandbox.ID(id), port)
	return preview.Seen{Project: s.Project, Public: s.Public, Host: s.Host, Key: s.Key}, valid, release, err
}

func (e byLink) AdmitLink(ctx context.Context, id string) (g preview.Grant, valid context.Context, release func(), err error) {
	l, valid, release, err := e.Service.AdmitLink(ctx, id)
	if err != nil {
		return g, nil, nil, err
	}
	guard.Proven(ctx)
	return preview.Grant{Project: l.Project, Sandbox: string(l.Sandbox), Port: l.Port, Expires: l.ExpiresAt, Link: l.ID}, valid, release, nil
}

// artifactsByLink is the same for the runs whose artifacts are requested.
type artifactsByLink struct{ *runs.Runner }

func (r artifactsByLink) ArtifactRun(ctx context.Context, c access.Caller, of, run string) (*sandbox.Run, error) {
	guard.Proven(ctx)
	return r.Runner.ArtifactRun(ctx, c, of, run)
}

// linkMaker makes the links of the REST coat.
type linkMaker struct{ *preview.Links }

// Token signs what the engine granted.
func (l linkMaker) Token(p ports.Preview) string {
	return l.Links.Token(preview.Grant{
		Project: p.Project, Sandbox: string(p.Sandbox), Port: p.Port, Expires: p.ExpiresAt, Link: p.Link,
	})
}

// withPreviews puts previews before the rest of the server: hosts of previews serve only
// previews, and so does their path.
func withPreviews(p *preview.Proxy, g *guard.Guard, next http.Handler) http.Handler {
	byPath := g.CheckHosts(p)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case p.IsHost(r.Host):
			p.ServeHTTP(w, r)
		case preview.IsPath(r.URL.EscapedPath()):
			byPath.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
