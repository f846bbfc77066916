// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/engine/ports"
	"sandpit.dev/sandbox"
)

// Previews makes the addresses of ports; nil in [Options]: the server has none.
type Previews interface {
	// Token proves the right that a preview is.
	Token(p ports.Preview) string
	// Addresses returns a preview's addresses as the sender of r reaches them: the one to
	// show, and the one by path.
	Addresses(r *http.Request, id string, port int) (address, path string)
}

// FileURI is the resource that a file is.
func FileURI(id sandbox.ID, p string) string {
	return "sandbox://" + string(id) + (&url.URL{Path: p}).EscapedPath()
}

// MediaOf is a file's type by its name.
func MediaOf(p string) string {
	ext := strings.ToLower(path.Ext(p))
	switch ext { // what the system's own table may not have, or has otherwise
	case ".md":
		return "text/markdown"
	case ".csv":
		return "text/csv"
	case ".txt", ".log", ".py", ".sh", ".go", ".rs", ".c", ".toml", ".yaml", ".yml":
		return "text/plain"
	case ".ipynb":
		return "application/json"
	}
	media, _, _ := mime.ParseMediaType(mime.TypeByExtension(ext))
	if media == "" {
		return "application/octet-stream"
	}
	return media
}

// ResourceLink is a link that clients read as a resource.
func ResourceLink(id sandbox.ID, f *sandbox.FileInfo) *mcp.ResourceLink {
	return &mcp.ResourceLink{URI: FileURI(id, f.Path), Name: PrintablePath(Clip(f.Name)), MIMEType: MediaOf(f.Path), Size: &f.Size}
}

// FileURL is a link to a file for browsers and programs without a token; "" where the
// server makes none.
func (c *Call) FileURL(s *sandbox.Sandbox, p string, life time.Duration) (address string, until time.Time) {
	if c.Links == nil || c.Address == nil || c.Caller.Sandbox != "" { // a link outlives tokens of one sandbox
		return "", until
	}
	until = time.Now().Add(life).Truncate(time.Second)
	return c.Links.Address(c.Address, filelink.Grant{
		Project: s.Project, Sandbox: string(s.ID), Path: p, Expires: until,
	}), until
}

// Bounds of the links to what a command has made.
const (
	MostMade   = 20
	mostURLs   = 5
	madeDepth  = 4
	madeLooked = 500
)

// coarse is how much older a file's time may be than that of its making: it is that
// of the kernel's last tick.
const coarse = 4 * time.Millisecond

// AddMade adds links to the files under /artifacts that are new since a time. That
// there are none, or that it cannot be told, is no news.
func (c *Call) AddMade(ctx context.Context, a *Answer, ref string, since time.Time) {
	_, found, _, err := c.Files.SearchFiles(ctx, c.Caller, ref, sandbox.Artifacts, sandbox.SearchFilesOptions{Depth: madeDepth, Limit: madeLooked})
	if err != nil {
		return
	}
	var made []sandbox.FileInfo
	for _, m := range found {
		if m.File.Type == sandbox.RegularFile && !m.File.ModTime.Before(since.Add(-coarse)) {
			made = append(made, m.File)
		}
	}
	if len(made) == 0 {
		return
	}
	s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
	if err != nil {
		return
	}
	a.Lines = append(a.Lines, fmt.Sprintf("artifacts (%d):", len(made)))
	for i := range made {
		if i == MostMade {
			a.Lines = append(a.Lines, fmt.Sprintf("  … and %d more", len(made)-i))
			break
		}
		f := &made[i]
		line := "  " + PrintablePath(f.Path) + " (" + BytesText(f.Size) + ")"
		if i < mostURLs {
			if address, _ := c.FileURL(s, f.Path, filelink.DefaultLife); address != "" {
				line += " " + address
			}
		}
		a.Lines = append(a.Lines, line)
		a.Links = append(a.Links, ResourceLink(s.ID, f))
	}
}
