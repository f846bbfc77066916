// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Paths are absolute, inside the sandbox, or relative to /workspace. User is
// an account of the sandbox, by name or number; empty: sandbox.

// ReadOptions say how to read a file. The zero value reads all of it.
type ReadOptions struct {
	User   string
	Offset int64 // bytes to pass over
	Length int64 // bytes to read; zero: to the end
}

// File is an open file. The caller closes it.
type File struct {
	io.ReadCloser
	Size       int64 // of what Read will return
	ModifiedAt time.Time
	Version    string // of its content, for WriteOptions.IfVersion; empty: not known
}

// ReadFile opens a file for reading. An offset at or beyond the file's end is an
// error.
func (c *Client) ReadFile(ctx context.Context, ref, path string, o ReadOptions) (*File, error) {
	// The size of what comes is wanted, which compressed bytes do not tell.
	r := request{method: "GET", path: of(ref, "/files/"), query: where(path, o.User), header: http.Header{"Accept-Encoding": {"identity"}}}
	if o.Offset > 0 || o.Length > 0 {
		spec := "bytes=" + strconv.FormatInt(o.Offset, 10) + "-"
		if o.Length > 0 {
			spec += strconv.FormatInt(o.Offset+o.Length-1, 10)
		}
		r.header.Set("Range", spec)
	}
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if resp.Header.Get("Sandpit-File-Type") == "dir" {
		_ = resp.Body.Close() // a listing that was not asked for
		return nil, fault.InvalidField("path", "%q is a directory", path)
	}
	f := &File{ReadCloser: resp.Body, Size: resp.ContentLength}
	f.Version = versionIn(resp.Header)
	f.ModifiedAt, _ = http.ParseTime(resp.Header.Get("Last-Modified")) // a directory's listing has none
	return f, nil
}

// WriteOptions say how to write a file. The zero value makes missing parents and
// lets the server choose the mode.
type WriteOptions struct {
	User      string
	Mode      fs.FileMode // permissions; zero: 0644, or those of the file that is replaced
	Size      int64       // of r's content, if it is known: it lets the server refuse early. Zero or negative: unknown
	NoParents bool        // do not make missing directories
	Sync      bool        // return when the file is on the server's disk, and not up to a second before
	// Attributes are text to keep with the file; nil: those of the file that is replaced.
	Attributes map[string]string

	// IfVersion is the version that the file has to have, and IfAbsent that there must be none: else it is left as it is, the
	// error is fault.PreconditionFailed, and its Version the one that the file has.
	IfVersion string
	IfAbsent  bool
}

// WriteFile writes the content of r to a file: all of it, or nothing if it fails.
func (c *Client) WriteFile(ctx context.Context, ref, path string, r io.Reader, o WriteOptions) error {
	_, err := c.ReplaceFile(ctx, ref, path, r, o)
	return err
}

// ReplaceFile is WriteFile that, with IfVersion or IfAbsent, returns the version of the new file.
func (c *Client) ReplaceFile(ctx context.Context, ref, path string, r io.Reader, o WriteOptions) (version string, err error) {
	q := where(path, o.User)
	if o.Mode != 0 {
		q.Set("mode", octal(o.Mode))
	}
	if o.NoParents {
		q.Set("parents", "false")
	}
	if o.Sync {
		q.Set("sync", "true")
	}
	if o.Attributes != nil {
		text, err := json.Marshal(o.Attributes)
		if err != nil {
			return "", err
		}
		q.Set("attributes", string(text))
	}
	size := o.Size
	if size <= 0 {
		size = -1
		if l, ok := r.(interface{ Len() int }); ok { // bytes.Reader, strings.Reader, bytes.Buffer
			size = int64(l.Len())
		}
	}
	header := http.Header{}
	if o.IfVersion != "" {
		header.Set("If-Match", quoted(o.IfVersion))
	}
	if o.IfAbsent {
		header.Set("If-None-Match", "*")
	}
	resp, err := c.do(ctx, request{method: "PUT", path: of(ref, "/files"), query: q, header: header, raw: r, size: size})
	if err != nil {
		return "", err
	}
	drain(resp.Body)
	_ = resp.Body.Close() // there is nothing in it
	return versionIn(resp.Header), nil
}

// quoted is a version as headers have it.
func quoted(version string) string { return `"` + strings.Trim(version, `"`) + `"` }

// versionIn is the version that an answer tells; empty: none, or one that is not sure.
func versionIn(h http.Header) string {
	tag := h.Get("Etag")
	if len(tag) < 2 || tag[0] != '"' {
		return ""
	}
	return strings.Trim(tag, `"`)
}

// Stat describes what is at a path; a link is not followed.
func (c *Client) Stat(ctx context.Context, ref, path, user string) (*v1.FileInfo, error) {
	out := new(v1.FileInfo)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/stat"), query: where(path, user)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ChangeFile changes a file's mode, owner, group and attributes, or those of a tree. No link is followed.
func (c *Client) ChangeFile(ctx context.Context, ref, path, user string, r v1.ChangeFile) (*v1.FileChanged, error) {
	out := new(v1.FileChanged)
	if _, err := c.call(ctx, request{method: "PATCH", path: of(ref, "/stat"), query: where(path, user), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ListFiles returns what is in a directory, and whether there is more. It returns at most limit
// entries, or 10000 for zero, and no more than the server holds of one list.
func (c *Client) ListFiles(ctx context.Context, ref, path, user string, limit int) (files []v1.FileInfo, more bool, err error) {
	return c.ListFilesAfter(ctx, ref, path, user, "", limit)
}

// ListFilesAfter is ListFiles that starts after a name, which is the last of the list before.
func (c *Client) ListFilesAfter(ctx context.Context, ref, path, user, after string, limit int) (files []v1.FileInfo, more bool, err error) {
	return c.ListTree(ctx, ref, path, user, 1, after, limit)
}

// ListTree lists what is below a directory, to a depth of 1 to 32, in the order of the paths. after is the path
// of the last entry that is known already, below the directory; empty: none is.
func (c *Client) ListTree(ctx context.Context, ref, path, user string, depth int, after string, limit int) (files []v1.FileInfo, more bool, err error) {
	q := where(path, user)
	if depth != 1 {
		q.Set("depth", strconv.Itoa(depth))
	}
	if after != "" {
		q.Set("after", after)
	}
	q.Set("detail", "true")
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	resp, err := c.do(ctx, request{method: "GET", path: of(ref, "/files"), query: q})
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	files, err = listing(resp.Body, path)
	return files, resp.Header.Get("Sandpit-Truncated") == "true", err
}

// Mkdir makes a directory and its parents. One that exists is not an error.
func (c *Client) Mkdir(ctx context.Context, ref string, r v1.MakeDir) error {
	_, err := c.call(ctx, request{method: "POST", path: of(ref, "/mkdir"), body: r}, nil)
	return err
}

// Move renames or moves a file or a directory.
func (c *Client) Move(ctx context.Context, ref string, r v1.MoveFile) error {
	_, err := c.call(ctx, request{method: "POST", path: of(ref, "/move"), body: r}, nil)
	return err
}

// Remove deletes a file, or a directory: one that is not empty only if
// recursive.
func (c *Client) Remove(ctx context.Context, ref, path, user string, recursive bool) error {
	q := where(path, user)
	if recursive {
		q.Set("recursive", "true")
	}
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/files"), query: q}, nil)
	return err
}

// RemoveVersion deletes a file that has a version still; another one is fault.PreconditionFailed, and stays.
func (c *Client) RemoveVersion(ctx context.Context, ref, path, user, version string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "/files"), query: where(path, user), header: http.Header{"If-Match": {quoted(version)}}}, nil)
	return err
}

// FindQuery says which files are found.
type FindQuery struct {
	User  string
	Glob  string // of names, or with a slash of paths, where ** stands for any directories; empty: all
	Depth int    // 1: only what is in the directory itself; zero: all
	Limit int    // zero: 100
	After string // only what comes after this path, below the directory
}

// FindFiles finds files and directories below a directory by their names.
func (c *Client) FindFiles(ctx context.Context, ref, path string, o FindQuery) (*v1.FoundFiles, error) {
	q := where(path, o.User)
	set(q, "glob", o.Glob)
	set(q, "after", o.After)
	setNumber(q, "depth", o.Depth)
	setNumber(q, "limit", o.Limit)
	out := new(v1.FoundFiles)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/find"), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// SearchQuery says in which files lines are found.
type SearchQuery struct {
	User       string
	Literal    bool // the pattern is taken as it is
	IgnoreCase bool
	Glob       string // as of FindQuery
	Depth      int
	Limit      int
}

// SearchFiles finds lines of text files below a directory that match a regular expression (RE2).
func (c *Client) SearchFiles(ctx context.Context, ref, path, pattern string, o SearchQuery) (*v1.FoundLines, error) {
	q := where(path, o.User)
	q.Set("pattern", pattern)
	for name, on := range map[string]bool{"literal": o.Literal, "ignore_case": o.IgnoreCase} {
		if on {
			q.Set(name, "true")
		}
	}
	set(q, "glob", o.Glob)
	setNumber(q, "depth", o.Depth)
	setNumber(q, "limit", o.Limit)
	out := new(v1.FoundLines)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/search"), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReplaceInFiles replaces text in files. Each is replaced whole or stays as it was: the answer tells of each.
func (c *Client) ReplaceInFiles(ctx context.Context, ref string, r v1.ReplaceInFiles) (*v1.FilesReplaced, error) {
	out := new(v1.FilesReplaced)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/replace"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// LinkFile makes a link to one file, for who has no token: to read it by GET, or with Write to write it by PUT.
func (c *Client) LinkFile(ctx context.Context, ref string, r v1.CreateFileLink) (*v1.FileLink, error) {
	out := new(v1.FileLink)
	if _, err := c.call(ctx, request{method: "POST", path: of(ref, "/links"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

func setNumber(q url.Values, name string, n int) {
	if n != 0 {
		q.Set(name, strconv.Itoa(n))
	}
}

func where(path, user string) url.Values {
	v := url.Values{"path": {path}}
	set(v, "user", user)
	return v
}

func octal(m fs.FileMode) string { return fmt.Sprintf("%04o", m.Perm()) }
