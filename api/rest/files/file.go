// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// target is where a file operation acts: the path of the route, which is
// relative to the workspace, or that of the query, which may be absolute.
type target struct {
	Ref   string  `path:"id" doc:"the sandbox's id or key"`
	Route string  `path:"path" doc:"relative to /workspace"`
	Path  *string `query:"path" doc:"absolute, or relative to /workspace"`
	User  *string `query:"user" doc:"an account of the sandbox, by name or number; left out: its own user"`
}

// byQuery is target for routes without a path of their own.
type byQuery struct {
	Ref  string  `path:"id" doc:"the sandbox's id or key"`
	Path *string `query:"path" doc:"absolute, or relative to /workspace"`
	User *string `query:"user" doc:"an account of the sandbox, by name or number; left out: its own user"`
}

type writeFile struct {
	target
	Mode    *string `query:"mode" doc:"permissions in octal; the default is 0644, or those of the file that is replaced"`
	Parents *bool   `query:"parents" doc:"make missing directories above it; the default is true"`
	Sync    *bool   `query:"sync" doc:"answer when the file is on the disk, where a power cut does not take it, and not up to a second before"`

	Attributes *string `query:"attributes" doc:"text to keep with the file: a JSON object of strings, 4096 bytes of keys and values in all. The default are those of the file that is replaced"`
}

// writeFile stores the raw body. It is whole or not at all: a body that is cut
// off leaves what was there before.
func (a *API) writeFile(ctx context.Context, c *httpapi.Call, in *writeFile) error {
	p, err := httpapi.Place(in.Route, in.Path, false)
	if err != nil {
		return err
	}
	if strings.HasSuffix(p, "/") {
		return fault.InvalidField("path", "%q ends with a slash, as a directory's does", sandbox.Clip(p, 80)).WithRemedy("make a directory by POST …/mkdir")
	}
	perm, err := httpapi.Mode("mode", in.Mode)
	if err != nil {
		return err
	}
	attributes, err := attributesOf(in.Attributes)
	if err != nil {
		return err
	}
	return a.write(ctx, c, in.Ref, p, a.MaxFile, sandbox.WriteFileOptions{
		User: httpapi.Given(in.User), Mode: perm, MakeParents: in.Parents == nil || *in.Parents,
		Sync: in.Sync != nil && *in.Sync, Attributes: attributes,
	})
}

// write stores the raw body, of at most most bytes.
func (a *API) write(ctx context.Context, c *httpapi.Call, ref, p string, most int64, o sandbox.WriteFileOptions) error {
	if c.R.Header.Get("Content-Range") != "" {
		return fault.New(fault.Malformed, "a part of a file cannot be written").WithRemedy("send the whole file, without the header Content-Range")
	}
	if c.R.ContentLength > most {
		return guard.TooLarge(most)
	}
	body, size, err := plain(c.R)
	if err != nil {
		return err
	}
	defer body.Close()
	o.Size = size
	if o.If, err = conditionOf(c.R.Header); err != nil {
		return err
	}
	info, _, err := a.Files.WriteFile(ctx, c.Caller, ref, p, http.MaxBytesReader(nil, body, most), o)
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return guard.TooLarge(tooBig.Limit)
		}
		return byUser(err)
	}
	if info.Version != "" {
		c.W.Header().Set("Etag", tagOf(info))
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

type writeFileJSON struct {
	byQuery
	Body v1.WriteFile
}

func (a *API) writeFileJSON(ctx context.Context, c *httpapi.Call, in *writeFileJSON) (v1.FileInfo, error) {
	var sp httpapi.Spellings
	b := &in.Body
	if in.Path != nil && b.Path != nil && *in.Path != *b.Path {
		sp.Add("path", "is %q in the query and %q in the body; give it once", sandbox.Clip(*in.Path, 80), sandbox.Clip(*b.Path, 80))
	}
	where := in.Path
	if where == nil {
		where = b.Path
	}
	user := httpapi.Given(in.User)
	if b.User != nil {
		if user != "" && user != *b.User {
			sp.Add("user", "is %q in the query and %q in the body; give it once", sandbox.Clip(user, 80), sandbox.Clip(*b.User, 80))
		}
		user = *b.User
	}
	var data []byte
	switch {
	case b.Content == nil:
		sp.Add("content", "is missing; send an empty text for an empty file")
	case b.Encoding == nil || *b.Encoding == "utf-8" || *b.Encoding == "utf8":
		data = []byte(*b.Content)
	case *b.Encoding == "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(*b.Content); err != nil {
			sp.Add("content", "is not base64: %v", err)
		}
	default:
		sp.Add("encoding", "%q is neither base64 nor utf-8", sandbox.Clip(*b.Encoding, 40))
	}
	perm, err := httpapi.Mode("mode", b.Mode)
	sp.Take(err)
	p, err := httpapi.Place("", where, false)
	sp.Take(err)
	condition, err := conditionOf(c.R.Header)
	sp.Take(err)
	if err := sp.Err(); err != nil {
		return v1.FileInfo{}, err
	}
	info, created, err := a.Files.WriteFile(ctx, c.Caller, in.Ref, p, bytes.NewReader(data), sandbox.WriteFileOptions{
		User: user, Mode: perm, Size: int64(len(data)), MakeParents: true, Sync: b.Sync, Attributes: b.Attributes, If: condition,
	})
	if err != nil {
		return v1.FileInfo{}, byUser(err)
	}
	if info.Version != "" {
		c.W.Header().Set("Etag", tagOf(info))
	}
	if created {
		c.Status = http.StatusCreated
	}
	return fileOf(info), nil
}

type removeFile struct {
	target
	Recursive *bool `query:"recursive" doc:"delete a directory with all that is in it"`
}

func (a *API) removeFile(ctx context.Context, c *httpapi.Call, in *removeFile) (httpapi.None, error) {
	p, err := httpapi.Place(in.Route, in.Path, false)
	if err != nil {
		return httpapi.None{}, err
	}
	condition, err := conditionOf(c.R.Header)
	if err != nil {
		return httpapi.None{}, err
	}
	if condition.Absent {
		return httpapi.None{}, fault.InvalidField("If-None-Match", "is for writes; what is not there cannot be deleted")
	}
	return httpapi.None{}, byUser(a.Files.RemoveFile(ctx, c.Caller, in.Ref, p, sandbox.RemoveFileOptions{
		User: httpapi.Given(in.User), Recursive: in.Recursive != nil && *in.Recursive, If: condition,
	}))
}

func (a *API) statFile(ctx context.Context, c *httpapi.Call, in *byQuery) (v1.FileInfo, error) {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return v1.FileInfo{}, err
	}
	info, err := a.Files.StatFile(ctx, c.Caller, in.Ref, p, httpapi.Given(in.User))
	if err != nil {
		return v1.FileInfo{}, byUser(err)
	}
	if info.Version != "" {
		c.W.Header().Set("Etag", tagOf(info))
	}
	return fileOf(info), nil
}

type makeDir struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.MakeDir
}

func (a *API) makeDir(ctx context.Context, c *httpapi.Call, in *makeDir) (httpapi.None, error) {
	p, err := httpapi.CheckPath("path", in.Body.Path)
	if err != nil {
		return httpapi.None{}, err
	}
	perm, err := httpapi.Mode("mode", in.Body.Mode)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, byUser(a.Files.MakeDir(ctx, c.Caller, in.Ref, p, sandbox.MakeDirOptions{
		User: httpapi.Given(in.Body.User), Parents: in.Body.Parents == nil || *in.Body.Parents, Mode: perm,
	}))
}

type moveFile struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.MoveFile
}

func (a *API) moveFile(ctx context.Context, c *httpapi.Call, in *moveFile) (httpapi.None, error) {
	from, err := httpapi.CheckPath("from", in.Body.From)
	if err != nil {
		return httpapi.None{}, err
	}
	to, err := httpapi.CheckPath("to", in.Body.To)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, byUser(a.Files.MoveFile(ctx, c.Caller, in.Ref, from, to, sandbox.MoveFileOptions{
		User: httpapi.Given(in.Body.User), Overwrite: in.Body.Overwrite,
	}))
}

// byUser tells an engine's error about who acts under the name that file
// operations have for it.
func byUser(err error) error {
	var sp httpapi.Spellings
	sp.Wrote("as_user", "user")
	return sp.Rename(err)
}

func fileOf(f sandbox.FileInfo) v1.FileInfo {
	return v1.FileInfo{
		Name: f.Name, Path: f.Path, Type: string(f.Type), Size: f.Size, Mode: octal(f.Mode),
		ModifiedAt: f.ModTime.UTC(), UID: f.UID, GID: f.GID, Target: f.Target,
		Owner: f.Owner, Group: f.Group, TargetType: string(f.TargetType), Attributes: f.Attributes, Version: f.Version,
	}
}

// octal writes permissions as chmod takes them.
func octal(m fs.FileMode) string {
	n := uint32(m.Perm())
	for _, special := range []struct {
		bit  fs.FileMode
		unix uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&special.bit != 0 {
			n |= special.unix
		}
	}
	return fmt.Sprintf("%04o", n)
}
