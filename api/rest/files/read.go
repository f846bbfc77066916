// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type readOrList struct {
	byQuery
	Limit  *int    `query:"limit" doc:"most entries of a listing, 1 to 100000; default 10000. A longer one, or one of more than 16 MiB, is cut and has the header Sandpit-Truncated: true"`
	After  *string `query:"after" doc:"only entries whose names come after this one, by their bytes: the last name of a listing that was cut goes on with the rest; with depth the last path, below the directory"`
	Depth  *int    `query:"depth" doc:"1 to 32; default 1. Above 1 also what is in directories below, as deep: in the order of the paths, the name of an entry being its path below the directory"`
	Detail *bool   `query:"detail" doc:"list FileInfo instead of FileEntry"`
}

// Bounds of listings.
const (
	defaultEntries = 10_000
	maxEntries     = 100_000
	maxListing     = 16 << 20 // bytes of JSON
)

// fileCost is what a byte of a file costs that is answered within JSON: as it came, in
// base64, and twice while that is encoded.
const fileCost = 6

// readOrList serves one route of two older services: a directory is listed, a
// file is answered as JSON.
func (a *API) readOrList(ctx context.Context, c *httpapi.Call, in *readOrList) error {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return err
	}
	limit := defaultEntries
	if in.Limit != nil {
		if limit = *in.Limit; limit < 1 || limit > maxEntries {
			return fault.InvalidField("limit", "%d is outside 1 to %d", limit, maxEntries)
		}
	}
	depth := 1
	if in.Depth != nil {
		if depth = *in.Depth; depth < 1 || depth > sandbox.MaxListDepth {
			return fault.InvalidField("depth", "%d is outside 1 to %d", depth, sandbox.MaxListDepth)
		}
	}
	user, detail := httpapi.Given(in.User), in.Detail != nil && *in.Detail
	err = a.list(ctx, c, in.Ref, p, sandbox.ListFilesOptions{User: user, Limit: limit, After: httpapi.Given(in.After), Depth: depth}, detail)
	if !maybeOther(err) || depth > 1 {
		return byUser(err)
	}
	info, body, ferr := a.Files.ReadFile(ctx, c.Caller, in.Ref, p, sandbox.ReadFileOptions{User: user, Length: maxJSONFile + 1, Version: true})
	if ferr != nil {
		if maybeOther(ferr) {
			return byUser(err)
		}
		return ferr
	}
	defer body.Close()
	c.W.Header().Set("Etag", tagOf(info))
	c.W.Header().Set("Cache-Control", "private, no-cache")
	if matches(c.R.Header.Get("If-None-Match"), tagOf(info)) {
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	if info.Size > maxJSONFile {
		return fault.New(fault.TooLarge, "%s has %d bytes; within JSON at most %d are sent", p, info.Size, maxJSONFile).
			WithRemedy("read it raw: GET …/files/{path}")
	}
	if err := c.Reserve(ctx, fileCost*info.Size); err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(body, maxJSONFile+1))
	if err != nil {
		return err
	}
	return c.AnswerHeld(v1.FileContent{Path: p, Content: base64.StdEncoding.EncodeToString(data), Encoding: "base64", Size: int64(len(data)), Version: info.Version})
}

// maybeOther reports whether an error of reading a file, or of listing a
// directory, may mean that it is the other of the two.
func maybeOther(err error) bool { return fault.Is(err, fault.Invalid) }

// list answers a directory. The entries are encoded as they come, and held until it is known
// whether they are all: a header says so.
func (a *API) list(ctx context.Context, c *httpapi.Call, ref, p string, o sandbox.ListFilesOptions, detail bool) error {
	l := c.Array(maxListing)
	below := ""
	if o.Depth > 1 {
		if below = p; !path.IsAbs(p) {
			below = path.Join(sandbox.Workspace, p)
		}
		below = strings.TrimSuffix(path.Clean(below), "/") + "/"
	}
	var text []byte
	more, err := a.Files.EachFile(ctx, c.Caller, ref, p, o, func(f sandbox.FileInfo) error {
		if detail {
			text = appendInfo(text[:0], &f)
		} else {
			name := f.Name
			if below != "" {
				name = strings.TrimPrefix(f.Path, below)
			}
			text = appendEntry(text[:0], name, string(f.Type), f.Size)
		}
		err := l.AddText(ctx, text)
		if errors.Is(err, httpapi.ErrFull) {
			return sandbox.ErrEnough
		}
		return err
	})
	if err != nil {
		return err
	}
	// A client that asked for a file can tell by this that it got none.
	c.W.Header().Set("Sandpit-File-Type", "dir")
	if more {
		c.W.Header().Set("Sandpit-Truncated", "true")
	}
	l.Answer()
	return nil
}
