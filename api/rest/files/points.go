// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/points"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// at is a disk at a point in time.
type at struct {
	Ref      string `path:"id" doc:"the sandbox's id or key"`
	Snapshot string `path:"snapshot" doc:"the snapshot's name or id; base: the image; now: the sandbox as it is, up or down"`
}

// alone is a disk that is named by its snapshot.
type alone struct {
	Snapshot string `path:"snapshot" doc:"the snapshot's id, or SANDBOX/NAME with the slash as %2F"`
}

type listing struct {
	Path   *string `query:"path" doc:"of the directory: absolute, or relative to /workspace, which is the default"`
	Limit  *int    `query:"limit" doc:"most entries of a page, 1 to 10000; default 1000"`
	Cursor *string `query:"cursor" doc:"next_cursor of the page before"`
}

type listAt struct {
	at
	listing
}

type listAlone struct {
	alone
	listing
}

func (a *API) listAt(ctx context.Context, c *httpapi.Call, in *listAt) (v1.FilePage, error) {
	return a.listPoint(ctx, c, in.Ref, in.Snapshot, &in.listing)
}

func (a *API) listAlone(ctx context.Context, c *httpapi.Call, in *listAlone) (v1.FilePage, error) {
	return a.listPoint(ctx, c, "", in.Snapshot, &in.listing)
}

func (a *API) listPoint(ctx context.Context, c *httpapi.Call, of, snap string, in *listing) (v1.FilePage, error) {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return v1.FilePage{}, err
	}
	limit := points.DefaultList
	if in.Limit != nil {
		if limit = *in.Limit; limit < 1 || limit > points.MaxList {
			return v1.FilePage{}, fault.InvalidField("limit", "%d is outside 1 to %d", limit, points.MaxList)
		}
	}
	all, more, err := a.Points.List(ctx, c.Caller, of, snap, p, httpapi.Given(in.Cursor), limit)
	if err != nil {
		return v1.FilePage{}, err
	}
	out := v1.FilePage{Items: make([]v1.FileInfo, 0, len(all))}
	for i := range all {
		out.Items = append(out.Items, fileOf(all[i]))
	}
	if more && len(all) > 0 {
		out.NextCursor = &all[len(all)-1].Name
	}
	return out, nil
}

// place is a file of a disk.
type place struct {
	Route string  `path:"path" doc:"relative to /workspace"`
	Path  *string `query:"path" doc:"absolute, or relative to /workspace"`
}

type readAt struct {
	at
	place
}

type readAlone struct {
	alone
	place
}

func (a *API) readAt(ctx context.Context, c *httpapi.Call, in *readAt) error {
	return a.readPoint(ctx, c, in.Ref, in.Snapshot, &in.place)
}

func (a *API) readAlone(ctx context.Context, c *httpapi.Call, in *readAlone) error {
	return a.readPoint(ctx, c, "", in.Snapshot, &in.place)
}

// readPoint sends a file of a disk raw, or the part of it that is wanted.
func (a *API) readPoint(ctx context.Context, c *httpapi.Call, of, snap string, in *place) error {
	p, err := httpapi.Place(in.Route, in.Path, false)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	info, body, err := a.Points.Read(ctx, c.Caller, of, snap, p)
	if err != nil {
		return err
	}
	defer body.Close()
	tag := describe(c.W.Header(), p, info)
	c.W.Header().Set("Vary", "Accept-Encoding")
	if known := c.R.Header.Get("If-None-Match"); matches(known, tag) || matches(known, zippedTag(tag)) {
		c.W.Header().Del("Content-Type")
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	if c.R.Method == http.MethodHead {
		c.W.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	part := section{}
	if condition := c.R.Header.Get("If-Range"); condition == "" || info.Version != "" && condition == tag {
		part = rangeOf(c.R.Header.Get("Range"), info.Size)
	}
	if _, err := body.Seek(part.offset, io.SeekStart); err != nil {
		return err
	}
	return a.send(c, info, body, part)
}

// rangeOf reads a header Range of a file whose size is known. What is no range of bytes, or several, is the whole file.
func rangeOf(header string, size int64) section {
	spec, ok := strings.CutPrefix(header, "bytes=")
	first, last, cut := strings.Cut(strings.TrimSpace(spec), "-")
	if !ok || !cut {
		return section{}
	}
	from, err1 := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	switch {
	case first == "" && err2 == nil && to > 0:
		return section{asked: true, offset: max(size-to, 0)}
	case err1 != nil || from < 0 || last != "" && (err2 != nil || to < from):
		return section{}
	case last == "":
		return section{asked: true, offset: from}
	}
	return section{asked: true, offset: from, length: to - from + 1}
}

type diffText struct {
	Ref  string  `path:"id" doc:"the sandbox's id or key"`
	Path *string `query:"path" doc:"of the file: absolute, or relative to /workspace"`
	From *string `query:"from" doc:"the name of one of its snapshots, also as SANDBOX/NAME, the id of any, or base (the default): the image"`
	To   *string `query:"to" doc:"likewise, or now (the default): the sandbox as it is"`
}

// diffCost is what a byte of a line that differs costs: as it is, and twice while it is encoded.
const diffCost = 3

func (a *API) diffText(ctx context.Context, c *httpapi.Call, in *diffText) (v1.TextDiff, error) {
	p, err := httpapi.Place("", in.Path, false)
	if err != nil {
		return v1.TextDiff{}, err
	}
	from, to := "base", "now"
	if in.From != nil {
		from = *in.From
	}
	if in.To != nil {
		to = *in.To
	}
	got, err := a.Points.DiffText(ctx, c.Caller, in.Ref, from, to, p)
	if err != nil {
		return v1.TextDiff{}, err
	}
	out := v1.TextDiff{
		From: from, To: to, Path: p, Kind: string(got.Kind), FromFile: fileOrNull(got.From), ToFile: fileOrNull(got.To),
		Hunks: make([]v1.TextHunk, 0, len(got.Hunks)), Added: got.Added, Removed: got.Removed, Truncated: got.Truncated,
	}
	held := 0
	for _, h := range got.Hunks {
		out.Hunks = append(out.Hunks, v1.TextHunk(h))
		for _, line := range h.Lines {
			held += len(line)
		}
	}
	return out, c.Reserve(ctx, int64(held*diffCost))
}

func fileOrNull(f *sandbox.FileInfo) *v1.FileInfo {
	if f == nil {
		return nil
	}
	out := fileOf(*f)
	return &out
}
