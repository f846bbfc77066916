// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/base64"
	"io"

	"sandpit.dev/agent"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

type readOrList struct {
	byQuery
	Limit  *int  `query:"limit" doc:"most entries of a listing, 1 to 100000; default 10000. A longer one is cut and has the header Sandpit-Truncated: true"`
	Detail *bool `query:"detail" doc:"list FileInfo instead of FileEntry"`
}

// Bounds of listings.
const (
	defaultEntries = 10_000
	maxEntries     = 100_000
)

// readOrList serves one route of two older services: a directory is listed, a
// file is answered as JSON.
func (a *API) readOrList(ctx context.Context, c *call, in *readOrList) error {
	p, err := place("", in.Path, true)
	if err != nil {
		return err
	}
	limit := defaultEntries
	if in.Limit != nil {
		if limit = *in.Limit; limit < 1 || limit > maxEntries {
			return fault.InvalidField("limit", "%d is outside 1 to %d", limit, maxEntries)
		}
	}
	user, detail := text0(in.User), in.Detail != nil && *in.Detail
	err = a.list(ctx, c, in.Ref, p, agent.ListOptions{User: user, Limit: limit}, detail)
	if !maybeOther(err) {
		return byUser(err)
	}
	info, body, ferr := a.engine.ReadFile(ctx, c.caller, in.Ref, p, agent.ReadOptions{User: user, Length: maxJSONFile + 1})
	if ferr != nil {
		if maybeOther(ferr) {
			return byUser(err)
		}
		return ferr
	}
	defer body.Close()
	if info.Size > maxJSONFile {
		return fault.New(fault.TooLarge, "%s has %d bytes; within JSON at most %d are sent", p, info.Size, maxJSONFile).
			WithRemedy("read it raw: GET …/files/{path}")
	}
	data, err := io.ReadAll(io.LimitReader(body, maxJSONFile+1))
	if err != nil {
		return err
	}
	return c.json(v1.FileContent{Path: p, Content: base64.StdEncoding.EncodeToString(data), Encoding: "base64", Size: int64(len(data))})
}

// maybeOther tells whether an error of reading a file, or of listing a
// directory, may mean that it is the other of the two.
func maybeOther(err error) bool { return fault.Is(err, fault.Invalid) }

func (a *API) list(ctx context.Context, c *call, ref, p string, o agent.ListOptions, detail bool) error {
	files, truncated, err := a.engine.ListFiles(ctx, c.caller, ref, p, o)
	if err != nil {
		return err
	}
	// A client that asked for a file can tell by this that it got none.
	c.w.Header().Set("Sandpit-File-Type", "dir")
	if truncated {
		c.w.Header().Set("Sandpit-Truncated", "true")
	}
	if detail {
		out := make([]v1.FileInfo, 0, len(files))
		for _, f := range files {
			out = append(out, fileOf(f))
		}
		return c.json(out)
	}
	out := make([]v1.FileEntry, 0, len(files))
	for _, f := range files {
		out = append(out, v1.FileEntry{Name: f.Name, Type: string(f.Type), Size: f.Size})
	}
	return c.json(out)
}
