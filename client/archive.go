// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// PackOptions say what an archive of files holds. The zero value packs links as links.
type PackOptions struct {
	User    string
	Follow  bool     // what links lead to, in their place
	Exclude []string // patterns of names, or with a slash of paths below the top, where ** stands for any directories
}

// Archive is a tar archive of files in a sandbox. Hostile code may have written it:
// unpack it confined, by os.Root. It is complete when Read returned io.EOF. The caller closes it.
type Archive struct {
	io.ReadCloser
	Type string // of what is packed: file, dir or symlink
	resp *http.Response
}

// LeftOut returns what is not in the archive, once Read has returned io.EOF: the first of it, and how much
// it is in all, below 0 where that is not known.
func (a *Archive) LeftOut() (first []v1.LeftOut, all int64) {
	var sum v1.Unpacked
	if err := json.Unmarshal([]byte(a.resp.Trailer.Get(v1.LeftOutTrailer)), &sum); err != nil {
		return nil, -1 // something on the way took the trailer
	}
	return sum.LeftOut, max(sum.LeftOutTotal, int64(len(sum.LeftOut)))
}

// PackFiles opens a file or a tree as a tar archive, in one stream. Its entries begin with the last name
// of the path, or with "." where it ends in none, as in "dir/.".
func (c *Client) PackFiles(ctx context.Context, ref, path string, o PackOptions) (*Archive, error) {
	q := where(path, o.User)
	if o.Follow {
		q.Set("follow", "true")
	}
	for _, x := range o.Exclude {
		q.Add("exclude", x)
	}
	resp, err := c.do(ctx, request{method: "GET", path: of(ref, "/archive"), query: q})
	if err != nil {
		return nil, c.withoutArchives(ctx, err)
	}
	return &Archive{&archive{resp.Body, "archive", "copy"}, resp.Header.Get("Sandpit-File-Type"), resp}, nil
}

// UnpackOptions say how an archive of files is unpacked. The zero value makes missing directories.
type UnpackOptions struct {
	User      string
	NoParents bool // do not make the directory
	Owners    bool // as root: files get the owners that the archive says
	Sync      bool // return when all is on the server's disk, and not up to a second before
	Outcomes  bool // tell what became of each entry; each file takes its name when it is complete
}

// UnpackFiles makes files of a tar archive below a directory, as it is sent. What it must not make is left
// out, and told. If it fails, a part is there: each file whole.
func (c *Client) UnpackFiles(ctx context.Context, ref, path string, r io.Reader, o UnpackOptions) (*v1.Unpacked, error) {
	q := where(path, o.User)
	for name, set := range map[string]bool{"owners": o.Owners, "sync": o.Sync, "outcomes": o.Outcomes} {
		if set {
			q.Set(name, "true")
		}
	}
	if o.NoParents {
		q.Set("parents", "false")
	}
	out := new(v1.Unpacked)
	_, err := c.call(ctx, request{method: "PUT", path: of(ref, "/archive"), query: q, raw: r, size: -1, header: http.Header{"Content-Type": {v1.ArchiveType}}}, out)
	if err != nil {
		return nil, c.withoutArchives(ctx, err)
	}
	return out, nil
}

// withoutArchives says of an error whether the server is of before it had archives of files.
func (c *Client) withoutArchives(ctx context.Context, err error) error {
	told, ok := errors.AsType[*fault.Error](err)
	if !ok || told.Code != fault.NotFound && told.Code != fault.Malformed {
		return err
	}
	var doc struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if _, derr := c.call(ctx, request{method: "GET", path: "/openapi.json", query: url.Values{}}, &doc); derr != nil || len(doc.Paths) == 0 {
		return err
	}
	for _, p := range []string{"/sandboxes/{id}/archive", "/v1/sandboxes/{id}/archive"} {
		if _, has := doc.Paths[p]; has {
			return err
		}
	}
	return fault.Wrap(fault.Unsupported, err, "the server is older than this client, and makes no archives of files").
		WithRemedy("update the server; until then copy file by file: PUT and GET …/files")
}
