// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxFile      = 16 << 20 // bytes of a file within JSON
	maxFileBody  = maxFile/3*4 + 64<<10
	maxBatch     = 64
	maxBatchBody = 64 << 20
	maxListed    = 100_000
)

type fileContent struct {
	Path    string `json:"path"`
	Content []byte `json:"content"` // base64
	Mode    *int64 `json:"mode"`
}

func (f *fileContent) options() (sandbox.WriteFileOptions, error) {
	o := sandbox.WriteFileOptions{Size: int64(len(f.Content)), MakeParents: true}
	if f.Path == "" {
		return o, fault.InvalidField("path", "is missing")
	}
	if len(f.Content) > maxFile {
		return o, fault.New(fault.TooLarge, "the file has %d bytes, more than %d", len(f.Content), maxFile).WithRemedy("send it by files.presign_upload")
	}
	if f.Mode != nil {
		if *f.Mode < 0 || *f.Mode > 0o777 {
			return o, fault.InvalidField("mode", "%d is outside 0 to %d, which is 0777", *f.Mode, 0o777)
		}
		o.Mode = fs.FileMode(*f.Mode)
	}
	return o, nil
}

type writtenShape struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes_written"`
}

func (a *API) write(ctx context.Context, c *httpapi.Call, ref string, f *fileContent) (sandbox.FileInfo, error) {
	o, err := f.options()
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	info, _, err := a.Files.WriteFile(ctx, c.Caller, ref, f.Path, bytes.NewReader(f.Content), o)
	return info, httpapi.Cause(ctx, err)
}

type writeFile struct {
	ID   string `path:"id"`
	Body fileContent
}

func (a *API) writeFile(ctx context.Context, c *httpapi.Call, in *writeFile) (writtenShape, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	info, err := a.write(ctx, c, in.ID, &in.Body)
	return writtenShape{info.Path, info.Size}, err
}

type writeFiles struct {
	ID   string `path:"id"`
	Body struct {
		Files []fileContent `json:"files"`
	}
}

type batchShape struct {
	Results []batchRow `json:"results"`
}

type batchRow struct {
	Path  string      `json:"path"`
	Bytes *int64      `json:"bytes_written"`
	Error *batchError `json:"error"`
}

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// writeFiles writes each file, whatever becomes of the others.
func (a *API) writeFiles(ctx context.Context, c *httpapi.Call, in *writeFiles) (batchShape, error) {
	if n := len(in.Body.Files); n == 0 || n > maxBatch {
		return batchShape{}, fault.InvalidField("files", "has %d files, outside 1 to %d", n, maxBatch)
	}
	ctx, done := c.Bound(ctx)
	defer done()
	if _, err := a.Sandboxes.Get(ctx, c.Caller, in.ID); err != nil { // a row cannot say so
		return batchShape{}, err
	}
	if err := c.Caller.Require(access.SandboxesWrite); err != nil {
		return batchShape{}, err
	}
	out := batchShape{Results: make([]batchRow, 0, len(in.Body.Files))}
	for i := range in.Body.Files {
		f := &in.Body.Files[i]
		row := batchRow{Path: f.Path}
		if info, err := a.write(ctx, c, in.ID, f); err != nil {
			e := fault.As(err)
			row.Error = &batchError{string(e.Code), e.Message}
		} else {
			row.Bytes = &info.Size
		}
		out.Results = append(out.Results, row)
	}
	return out, nil
}

type byPath struct {
	ID   string  `path:"id"`
	Path *string `query:"path"`
}

func (in *byPath) place() (string, error) { return httpapi.Place("", in.Path, false) }

// fileShape is a file, which has content, be it empty.
type fileShape struct {
	Directory bool   `json:"is_dir"`
	Content   []byte `json:"content"`
}

type directoryShape struct {
	Directory bool         `json:"is_dir"`
	Entries   []entryShape `json:"entries"`
}

type entryShape struct {
	Name      string    `json:"name"`
	Directory bool      `json:"is_dir"`
	Size      int64     `json:"size"`
	Mode      int       `json:"mode"`
	Modified  time.Time `json:"modified_at"`
}

func isDir(f *sandbox.FileInfo) bool {
	return f.Type == sandbox.Directory || f.TargetType == sandbox.Directory
}

// readFile answers with a file, or with what is in a directory.
func (a *API) readFile(ctx context.Context, c *httpapi.Call, in *byPath) (any, error) {
	p, err := in.place()
	if err != nil {
		return nil, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	at, err := a.Files.StatFile(ctx, c.Caller, in.ID, p, "")
	if err != nil {
		return nil, httpapi.Cause(ctx, err)
	}
	if isDir(&at) {
		return a.directory(ctx, c, in.ID, p)
	}
	info, body, err := a.Files.ReadFile(ctx, c.Caller, in.ID, p, sandbox.ReadFileOptions{})
	if err != nil {
		return nil, httpapi.Cause(ctx, err)
	}
	defer body.Close()
	if info.Size > maxFile {
		return nil, fault.New(fault.TooLarge, "%s has %d bytes, more than %d", sandbox.Clip(p, 80), info.Size, maxFile).WithRemedy("read it by files.presign_download")
	}
	if err := c.Reserve(ctx, 3*info.Size); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(body, info.Size))
	if err != nil {
		return nil, httpapi.Cause(ctx, err)
	}
	return fileShape{Content: append([]byte{}, data...)}, nil
}

func (a *API) directory(ctx context.Context, c *httpapi.Call, ref, p string) (any, error) {
	all, more, err := service.Directory(ctx, a.Files, c.Caller, ref, p, sandbox.ListFilesOptions{Limit: maxListed}, c.Reserve)
	if err != nil {
		return nil, httpapi.Cause(ctx, err)
	}
	if more {
		return nil, fault.New(fault.TooLarge, "%s has more than a list has, which is %d entries, or 16 MiB of names", sandbox.Clip(p, 80), maxListed).WithRemedy("list a directory below it, or read them by a command")
	}
	out := directoryShape{Directory: true, Entries: make([]entryShape, 0, len(all))}
	for i := range all {
		f := &all[i]
		out.Entries = append(out.Entries, entryShape{f.Name, isDir(f), f.Size, int(f.Mode.Perm()), f.ModTime.UTC()})
	}
	return out, nil
}

// deleteFile removes a file; a directory is refused, as the SDK says.
func (a *API) deleteFile(ctx context.Context, c *httpapi.Call, in *byPath) (httpapi.None, error) {
	p, err := in.place()
	if err != nil {
		return httpapi.None{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	info, err := a.Files.StatFile(ctx, c.Caller, in.ID, p, "")
	if err == nil && info.Type == sandbox.Directory {
		err = fault.InvalidField("path", "%q is a directory", sandbox.Clip(p, 80)).WithRemedy("remove it by a command: rm -r")
	}
	if err == nil {
		err = a.Files.RemoveFile(ctx, c.Caller, in.ID, p, sandbox.RemoveFileOptions{})
	}
	return httpapi.None{}, httpapi.Cause(ctx, err)
}

type makeDir struct {
	ID   string `path:"id"`
	Body struct {
		Path    string `json:"path"`
		Parents *bool  `json:"parents"`
	}
}

func (a *API) makeDir(ctx context.Context, c *httpapi.Call, in *makeDir) (httpapi.None, error) {
	p, err := httpapi.CheckPath("path", in.Body.Path)
	if err != nil {
		return httpapi.None{}, err
	}
	parents := in.Body.Parents == nil || *in.Body.Parents
	return httpapi.None{}, a.Files.MakeDir(ctx, c.Caller, in.ID, p, sandbox.MakeDirOptions{Parents: parents})
}

type moveFile struct {
	ID   string `path:"id"`
	Body struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	}
}

func (a *API) moveFile(ctx context.Context, c *httpapi.Call, in *moveFile) (httpapi.None, error) {
	from, err := httpapi.CheckPath("source", in.Body.Source)
	if err != nil {
		return httpapi.None{}, err
	}
	to, err := httpapi.CheckPath("destination", in.Body.Destination)
	if err != nil {
		return httpapi.None{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	return httpapi.None{}, httpapi.Cause(ctx, a.Files.MoveFile(ctx, c.Caller, in.ID, from, to, sandbox.MoveFileOptions{}))
}

type statShape struct {
	Path      string     `json:"path"`
	Exists    bool       `json:"exists"`
	Directory bool       `json:"is_dir"`
	Size      int64      `json:"size"`
	Mode      *int       `json:"mode"`
	Modified  *time.Time `json:"modified_at"`
}

// statFile answers with what a file is, or that there is none.
func (a *API) statFile(ctx context.Context, c *httpapi.Call, in *byPath) (statShape, error) {
	p, err := in.place()
	if err != nil {
		return statShape{}, err
	}
	info, err := a.Files.StatFile(ctx, c.Caller, in.ID, p, "")
	if fault.Is(err, fault.NotFound) {
		_, err = a.Sandboxes.Get(ctx, c.Caller, in.ID) // where it is there, the file is not
		return statShape{Path: p}, err
	}
	if err != nil {
		return statShape{}, err
	}
	return statShape{info.Path, true, isDir(&info), info.Size, new(int(info.Mode.Perm())), new(info.ModTime.UTC())}, nil
}

type presign struct {
	ID   string `path:"id"`
	Body struct {
		Path    string `json:"path"`
		Expires *int64 `json:"expires_in"`
	}
}

// Bounds of a link, in seconds.
const (
	leastLink   = 60
	defaultLink = 600
	mostLink    = 3600
)

type presigned struct {
	URL     string    `json:"url"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Expires time.Time `json:"expires_at"`
}

func (a *API) presignDownload(ctx context.Context, c *httpapi.Call, in *presign) (presigned, error) {
	g, err := a.grant(ctx, c, in, access.SandboxesRead)
	if err != nil {
		return presigned{}, err
	}
	info, body, err := a.Files.ReadFile(ctx, c.Caller, in.ID, g.Path, sandbox.ReadFileOptions{Length: 1}) // a link may lead to it
	if err != nil {
		return presigned{}, err
	}
	_ = body.Close() // nothing was read
	g.Path = info.Path
	return presigned{a.links.Address(c.R, g), "GET", g.Path, g.Expires.UTC()}, nil
}

func (a *API) presignUpload(ctx context.Context, c *httpapi.Call, in *presign) (presigned, error) {
	g, err := a.grant(ctx, c, in, access.SandboxesWrite)
	if err != nil {
		return presigned{}, err
	}
	if path.Base(g.Path) == "/" || in.Body.Path[len(in.Body.Path)-1] == '/' {
		return presigned{}, fault.InvalidField("path", "%q is a directory's", sandbox.Clip(in.Body.Path, 80))
	}
	g.Write, g.Most = true, filelink.MaxMost
	return presigned{a.links.Address(c.R, g), "PUT", g.Path, g.Expires.UTC()}, nil
}

// grant is what a link to a file is of, for who has a scope.
func (a *API) grant(ctx context.Context, c *httpapi.Call, in *presign, scope access.Scope) (filelink.Grant, error) {
	var none filelink.Grant
	if err := c.Caller.RequireProject(); err != nil { // a link outlives tokens of one sandbox, which end together
		return none, err
	}
	if err := c.Caller.Require(scope); err != nil {
		return none, err
	}
	p, err := httpapi.CheckPath("path", in.Body.Path)
	if err != nil {
		return none, err
	}
	seconds := int64(defaultLink)
	if in.Body.Expires != nil {
		seconds = *in.Body.Expires
	}
	if seconds < leastLink || seconds > mostLink {
		return none, fault.InvalidField("expires_in", "%d is outside %d to %d", seconds, leastLink, mostLink)
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return none, err
	}
	if !path.IsAbs(p) {
		p = path.Join(sandbox.Workspace, p)
	}
	return filelink.Grant{Project: s.Project, Sandbox: string(s.ID), Path: path.Clean(p), Expires: time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)}, nil
}
