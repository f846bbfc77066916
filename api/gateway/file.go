// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// The SDK takes the first slash off each path, so that "/workspace/a" and "workspace/a" are one on the wire, while other
// clients mean paths below the workspace. A path is below the workspace where its first part is there, else below the root
// where its first part is a directory there, and else below the workspace.

// uploads is the directory that the SDK lists where a caller names none. It is below the workspace here, since a
// sandbox's user owns nothing at the root.
const uploads = "/attachments"

// routed returns the path that a route means.
func (a *API) routed(ctx context.Context, c *httpapi.Call, ref, route string) (string, error) {
	p, err := httpapi.CheckPath("path", strings.TrimLeft(route, "/"))
	if err != nil {
		return "", err
	}
	first, _, below := strings.Cut(p, "/")
	if !below {
		return p, nil
	}
	switch _, err := a.Files.StatFile(ctx, c.Caller, ref, first, ""); {
	case err == nil:
		return p, nil
	case !fault.Is(err, fault.NotFound):
		return "", err
	}
	info, err := a.Files.StatFile(ctx, c.Caller, ref, "/"+first, "")
	if err == nil && (info.Type == sandbox.Directory || info.TargetType == sandbox.Directory) {
		return "/" + p, nil
	}
	return p, nil
}

type listFiles struct {
	ID   string  `path:"id"`
	Path *string `query:"path"`
}

type fileList struct {
	Items []file `json:"items"`
}

type file struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	Type      string    `json:"type"`
	Directory bool      `json:"is_directory"`
	Modified  time.Time `json:"modified_at"`
}

func (a *API) listFiles(ctx context.Context, c *httpapi.Call, in *listFiles) (fileList, error) {
	ref, err := refOf(in.ID)
	if err != nil {
		return fileList{}, err
	}
	at, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return fileList{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	all, cut, err := service.Directory(ctx, a.Files, c.Caller, ref, at, sandbox.ListFilesOptions{Limit: maxListed}, c.Reserve)
	if below, ok := strings.CutPrefix(at, uploads); ok && fault.Is(err, fault.NotFound) && (below == "" || below[0] == '/') {
		all, cut, err = service.Directory(ctx, a.Files, c.Caller, ref, strings.TrimPrefix(at, "/"), sandbox.ListFilesOptions{Limit: maxListed}, c.Reserve)
		if fault.Is(err, fault.NotFound) && strings.Trim(below, "/") == "" {
			_, err = a.Sandboxes.Get(ctx, c.Caller, ref) // where it is there, nothing was uploaded yet
		}
	}
	if err != nil {
		return fileList{}, httpapi.Cause(ctx, err)
	}
	if cut {
		return fileList{}, fault.New(fault.TooLarge, "%s has more than a list has, which is %d entries, or 16 MiB of names", sandbox.Clip(at, 80), maxListed).WithRemedy("list a directory below it, or read them by a command")
	}
	out := fileList{Items: make([]file, 0, len(all))}
	for _, f := range all {
		out.Items = append(out.Items, file{
			Name: f.Name, Path: f.Path, Size: f.Size, Type: string(f.Type), Directory: f.Type == sandbox.Directory || f.TargetType == sandbox.Directory, Modified: f.ModTime.UTC(),
		})
	}
	return out, nil
}

// maxListed is how many entries a list has: the SDK knows of no next page.
const maxListed = 100_000

type byPath struct {
	ID   string `path:"id"`
	Path string `path:"path"`
}

func (a *API) readFile(ctx context.Context, c *httpapi.Call, in *byPath) error {
	ref, err := refOf(in.ID)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	p, err := a.routed(ctx, c, ref, in.Path)
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	info, body, err := a.Files.ReadFile(ctx, c.Caller, ref, p, sandbox.ReadFileOptions{})
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	defer body.Close()
	h := c.W.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(info.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(p)}))
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	c.W.WriteHeader(http.StatusOK)
	out := c.StallWriter()
	defer out.Close()
	_, err = io.Copy(out, body)
	return err
}

func (a *API) writeFile(ctx context.Context, c *httpapi.Call, in *byPath) (httpapi.None, error) {
	ref, err := refOf(in.ID)
	if err != nil {
		return httpapi.None{}, err
	}
	if strings.HasSuffix(in.Path, "/") {
		return httpapi.None{}, fault.InvalidField("path", "%q ends with a slash, as a directory's does", sandbox.Clip(in.Path, 80))
	}
	ctx, done := c.Bound(ctx)
	defer done()
	p, err := a.routed(ctx, c, ref, in.Path)
	if err == nil {
		_, _, err = a.Files.WriteFile(ctx, c.Caller, ref, p, c.R.Body, sandbox.WriteFileOptions{Size: c.R.ContentLength, MakeParents: true})
	}
	return httpapi.None{}, httpapi.Cause(ctx, err)
}
