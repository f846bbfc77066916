// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"net/http"
	"path"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Linked answers with the file that the request's path is a link to, or writes it where the link is for that: with the
// rights of a caller that may read, or write, the link's project, and as the user sandbox.
func (a *API) Linked(c *httpapi.Call, links *filelink.Links) error {
	c.W.Header().Set("Referrer-Policy", "no-referrer") // the address is a secret
	read := c.R.Method == http.MethodGet || c.R.Method == http.MethodHead
	if !read && c.R.Method != http.MethodPut {
		c.W.Header().Set("Allow", "GET, HEAD, PUT")
		return guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Unsupported, "linked files can be read or written and nothing else"))
	}
	token, name, err := filelink.Parse(c.R.URL.EscapedPath())
	if err != nil {
		return err
	}
	g, err := links.Read(token, time.Now())
	if err != nil {
		return err
	}
	if name != path.Base(g.Path) { // else a link could be given a name that its file has not
		return fault.New(fault.NotFound, "there is no linked file %q", sandbox.Clip(name, 80))
	}
	if read == g.Write {
		allow, what := "GET, HEAD", "reading"
		if g.Write {
			allow, what = http.MethodPut, "writing"
		}
		c.W.Header().Set("Allow", allow)
		return guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Unsupported, "the link is for %s the file, and for nothing else", what).
			WithRemedy("ask whoever gave it to you for one of the other kind"))
	}
	c.Caller = g.Caller()
	ctx := c.R.Context()
	guard.Proven(ctx)
	switch {
	case g.Write:
		return a.write(ctx, c, g.Sandbox, g.Path, min(g.Most, a.MaxFile), sandbox.WriteFileOptions{MakeParents: true})
	case c.R.Method == http.MethodHead:
		return a.headFile(ctx, c, g.Sandbox, g.Path, "")
	}
	return a.sendFile(ctx, c, g.Sandbox, g.Path, "")
}

type createLink struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreateFileLink
}

// createLink makes a link to a file, which for reading has to be there.
func (a *API) createLink(ctx context.Context, c *httpapi.Call, in *createLink) (v1.FileLink, error) {
	b := &in.Body
	var none v1.FileLink
	if err := c.Caller.RequireProject(); err != nil { // a link outlives tokens of one sandbox, which end together
		return none, err
	}
	p, err := httpapi.CheckPath("path", b.Path)
	if err != nil {
		return none, err
	}
	life := filelink.DefaultLife
	if b.ExpiresSeconds != 0 {
		if b.ExpiresSeconds < int(filelink.MinLife.Seconds()) || b.ExpiresSeconds > int(filelink.MaxLife.Seconds()) {
			return none, fault.InvalidField("expires_seconds", "%d is outside %d to %d", b.ExpiresSeconds, int(filelink.MinLife.Seconds()), int(filelink.MaxLife.Seconds()))
		}
		life = time.Duration(b.ExpiresSeconds) * time.Second
	}
	most := int64(filelink.DefaultMost)
	switch {
	case !b.Write && b.MaxBytes != 0:
		return none, fault.InvalidField("max_bytes", "is for links to write a file")
	case b.MaxBytes < 0 || b.MaxBytes > filelink.MaxMost:
		return none, fault.InvalidField("max_bytes", "%d is outside 1 to %d", b.MaxBytes, int64(filelink.MaxMost))
	case b.MaxBytes > 0:
		most = b.MaxBytes
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return none, err
	}
	if a.Links == nil {
		return none, fault.New(fault.Unsupported, "this server makes no links to files").WithRemedy("use a token, and …/files/{path}")
	}
	g := filelink.Grant{Project: s.Project, Sandbox: string(s.ID), Path: absolute(p), Expires: time.Now().Add(life).Truncate(time.Second)}
	out := v1.FileLink{Method: http.MethodGet, ExpiresAt: g.Expires.UTC()}
	if b.Write {
		if err := c.Caller.Require(access.SandboxesWrite); err != nil {
			return none, err
		}
		if path.Base(g.Path) == "/" || b.Path[len(b.Path)-1] == '/' {
			return none, fault.InvalidField("path", "%q is a directory's", sandbox.Clip(b.Path, 80))
		}
		g.Write, g.Most = true, most
		out.Method, out.MaxBytes = http.MethodPut, most
	} else {
		// Opened, and not only looked at: a link of the sandbox's may lead to the file.
		info, body, err := a.Files.ReadFile(ctx, c.Caller, in.Ref, p, sandbox.ReadFileOptions{Length: 1})
		if err != nil {
			return none, byUser(err)
		}
		_ = body.Close() // nothing was read
		g.Path = info.Path
	}
	out.Path, out.URL = g.Path, a.Links.Address(c.R, g)
	return out, nil
}

// absolute is a path as the sandbox has it.
func absolute(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(sandbox.Workspace, p)
	}
	return path.Clean(p)
}
