// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"

	"sandpit.dev/agent"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

type readOrList struct {
	byQuery
	Limit  *int    `query:"limit" doc:"most entries of a listing, 1 to 100000; default 10000. A longer one, or one of more than 16 MiB, is cut and has the header Sandpit-Truncated: true"`
	After  *string `query:"after" doc:"only entries whose names come after this one, by their bytes: the last name of a listing that was cut goes on with the rest"`
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
	err = a.list(ctx, c, in.Ref, p, agent.ListOptions{User: user, Limit: limit, After: text0(in.After)}, detail)
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
	if err := c.reserve(ctx, fileCost*info.Size); err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(body, maxJSONFile+1))
	if err != nil {
		return err
	}
	return c.whole(v1.FileContent{Path: p, Content: base64.StdEncoding.EncodeToString(data), Encoding: "base64", Size: int64(len(data))})
}

// maybeOther tells whether an error of reading a file, or of listing a
// directory, may mean that it is the other of the two.
func maybeOther(err error) bool { return fault.Is(err, fault.Invalid) }

// list answers a directory. The entries are encoded as they come, and held until it is known
// whether they are all: a header says so.
func (a *API) list(ctx context.Context, c *call, ref, p string, o agent.ListOptions, detail bool) error {
	l := listing{c: c, most: maxListing}
	more, err := a.engine.EachFile(ctx, c.caller, ref, p, o, func(f agent.FileInfo) error {
		if detail {
			return l.add(ctx, fileOf(f))
		}
		return l.add(ctx, v1.FileEntry{Name: f.Name, Type: string(f.Type), Size: f.Size})
	})
	if err != nil {
		return err
	}
	// A client that asked for a file can tell by this that it got none.
	c.w.Header().Set("Sandpit-File-Type", "dir")
	if more {
		c.w.Header().Set("Sandpit-Truncated", "true")
	}
	l.answer()
	return nil
}

// listing is a JSON array that is collected, in pieces so that none has to be copied into a
// larger one.
type listing struct {
	c     *call
	full  [][]byte
	last  []byte
	size  int64
	most  int64
	asked bool
}

// add encodes one more entry; agent.ErrEnough is that there is no room for it.
func (l *listing) add(ctx context.Context, entry any) (err error) {
	wrong := encode(entry, func(text []byte) { err = l.put(ctx, bytes.TrimSuffix(text, []byte{'\n'})) })
	return cmp.Or(wrong, err)
}

func (l *listing) put(ctx context.Context, text []byte) error {
	if !l.asked && l.size+int64(len(text)) > freeAnswer {
		l.asked = true
		got, err := l.c.room.Take(ctx, l.most)
		if err != nil {
			return err
		}
		l.most = got
	}
	if l.size+int64(len(text))+2 > l.most {
		return agent.ErrEnough
	}
	if len(l.last)+len(text)+1 > cap(l.last) {
		if len(l.last) > 0 {
			l.full = append(l.full, l.last)
		}
		l.last = make([]byte, 0, max(len(text)+1, min(answerPiece, 512+4*cap(l.last))))
	}
	if l.size > 0 {
		l.last = append(l.last, ',')
	}
	l.last = append(l.last, text...)
	l.size += int64(len(text)) + 1
	return nil
}

// answer sends the array. What was taken and is not needed goes back first.
func (l *listing) answer() {
	if l.asked {
		l.c.room.Give(l.most - l.size)
	}
	size := int64(len("[]\n")) + max(0, l.size-1)
	l.c.begin(size)
	w := l.c.paced(size)
	defer w.done()
	pieces := append(l.full, l.last, []byte("]\n"))
	for i, piece := range append([][]byte{{'['}}, pieces...) {
		if i > 0 {
			pieces[i-1] = nil
		}
		if _, err := w.Write(piece); err != nil {
			return // the client went away: nothing to tell
		}
	}
}
