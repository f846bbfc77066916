// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	v1 "sandpit.dev/api/v1"
)

// disk is the path of a disk at a point in time: a snapshot, "base" or "now" of a sandbox, or with ref empty a snapshot by
// its id or as SANDBOX/NAME.
func disk(ref, at, rest string) string {
	if ref == "" {
		return "/snapshots/" + url.PathEscape(at) + rest
	}
	return of(ref, "/snapshots/"+url.PathEscape(at)+rest)
}

// ReadFileAt opens a file of a sandbox's disk as it was at a point in time: a snapshot, "base" or "now". With ref empty the
// point is a snapshot by its id, or as SANDBOX/NAME. It starts no sandbox, and uses none.
func (c *Client) ReadFileAt(ctx context.Context, ref, at, path string) (*File, error) {
	resp, err := c.do(ctx, request{method: "GET", path: disk(ref, at, "/files/"), query: where(path, ""), header: http.Header{"Accept-Encoding": {"identity"}}})
	if err != nil {
		return nil, err
	}
	f := &File{ReadCloser: resp.Body, Size: resp.ContentLength, Version: versionIn(resp.Header)}
	f.ModifiedAt, _ = http.ParseTime(resp.Header.Get("Last-Modified")) // which a server of ours sends
	return f, nil
}

// ListFilesAt lists a directory as ReadFileAt reads a file, a page at a time: cursor is what the page before returned, empty
// for the first one, and limit the most entries, zero for 1000.
func (c *Client) ListFilesAt(ctx context.Context, ref, at, path, cursor string, limit int) (files []v1.FileInfo, next string, err error) {
	q := where(path, "")
	set(q, "cursor", cursor)
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	var out v1.FilePage
	if _, err := c.call(ctx, request{method: "GET", path: disk(ref, at, "/files"), query: q}, &out); err != nil {
		return nil, "", err
	}
	if out.NextCursor != nil {
		next = *out.NextCursor
	}
	return out.Items, next, nil
}

// DiffText returns what differs in the text of one file between two points in time; Limit is not used.
func (c *Client) DiffText(ctx context.Context, ref, path string, o DiffOptions) (*v1.TextDiff, error) {
	q := where(path, "")
	set(q, "from", o.From)
	set(q, "to", o.To)
	out := new(v1.TextDiff)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/diff/text"), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}
