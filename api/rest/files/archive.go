// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

type packFiles struct {
	byQuery
	Follow  *bool    `query:"follow" doc:"what links lead to, in their place"`
	Exclude []string `query:"exclude" doc:"patterns of what is passed over, with all in it: of names, or with a slash of paths below the top, where ** stands for any directories"`
}

// packFiles sends a file or a tree as a tar archive, as it is read. One that breaks off ends with the
// connection.
func (a *API) packFiles(ctx context.Context, c *httpapi.Call, in *packFiles) error {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	info, body, err := a.Files.PackFiles(ctx, c.Caller, in.Ref, p, sandbox.PackFilesOptions{
		User: httpapi.Given(in.User), Follow: in.Follow != nil && *in.Follow, Exclude: in.Exclude,
	})
	if err != nil {
		return byUser(err)
	}
	defer body.Close()
	h := c.W.Header()
	h.Set("Content-Type", v1.ArchiveType)
	h.Set("Content-Disposition", "attachment")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Sandpit-File-Type", string(info.Type))
	if c.R.Method == http.MethodHead {
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	h.Set("Trailer", v1.LeftOutTrailer)
	w := c.StallWriter()
	defer w.Close()
	if _, err := io.CopyBuffer(w, body, make([]byte, archiveBuffer)); err != nil {
		return httpapi.Cause(ctx, err)
	}
	h.Set(v1.LeftOutTrailer, trailerOf(body.Sum()))
	return nil
}

const (
	archiveBuffer = 128 << 10
	// maxTrailer is less than clients take of a trailer.
	maxTrailer = 2500
)

// trailerOf is what is left out of an archive as JSON in ASCII: as many entries as a trailer may have.
func trailerOf(sum sandbox.FilesPacked) string {
	out := unpackedOf(sum)
	for {
		b, err := json.Marshal(out)
		if err == nil {
			if text := inASCII(string(b)); len(text) <= maxTrailer {
				return text
			}
		}
		if len(out.LeftOut) == 0 {
			return "{}"
		}
		out.LeftOut = out.LeftOut[:len(out.LeftOut)/2]
	}
}

// inASCII writes other characters of JSON by their numbers.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func unpackedOf(sum sandbox.FilesPacked) v1.Unpacked {
	out := v1.Unpacked{Entries: sum.Entries, Bytes: sum.Bytes, LeftOut: make([]v1.LeftOut, 0, len(sum.Left)), LeftOutTotal: sum.LeftAll}
	for _, l := range sum.Left {
		out.LeftOut = append(out.LeftOut, v1.LeftOut(l))
	}
	return out
}

type unpackFiles struct {
	byQuery
	Parents *bool `query:"parents" doc:"make the directory, and those above it; the default is true"`
	Each    *bool `query:"outcomes" doc:"tell what became of each entry; each file takes its name when it is complete"`
	Owners  *bool `query:"owners" doc:"as root: files get the owners that the archive says, and not root"`
	Sync    *bool `query:"sync" doc:"answer when all is on the disk, where a power cut does not take it, and not up to a second before"`
}

// unpackFiles makes files of the raw body as it comes.
func (a *API) unpackFiles(ctx context.Context, c *httpapi.Call, in *unpackFiles) (v1.Unpacked, error) {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return v1.Unpacked{}, err
	}
	body, _, err := plain(c.R)
	if err != nil {
		return v1.Unpacked{}, err
	}
	defer body.Close()
	if in.Each != nil && *in.Each {
		if err := c.Reserve(ctx, outcomesCost); err != nil {
			return v1.Unpacked{}, err
		}
	}
	ctx, done := c.Bound(ctx)
	defer done()
	sum, err := a.Files.UnpackFiles(ctx, c.Caller, in.Ref, p, http.MaxBytesReader(nil, body, maxUnpacked), sandbox.UnpackFilesOptions{
		User: httpapi.Given(in.User), Most: maxUnpacked, MakeParents: in.Parents == nil || *in.Parents,
		Outcomes: in.Each != nil && *in.Each, Owners: in.Owners != nil && *in.Owners, Sync: in.Sync != nil && *in.Sync,
	})
	if err != nil {
		if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return v1.Unpacked{}, guard.TooLarge(tooBig.Limit)
		}
		return v1.Unpacked{}, httpapi.Cause(ctx, byUser(err))
	}
	out := unpackedOf(sum)
	for _, o := range sum.Outcomes {
		out.Outcomes = append(out.Outcomes, v1.Outcome(o))
	}
	return out, nil
}

// outcomesCost is what the outcomes of an archive take here, read and as they are written.
const outcomesCost = 32 << 20

// maxUnpacked bounds what the files of an archive have together. A file of holes takes next to nothing of
// a disk, whose limit is the sandbox's, but time.
const maxUnpacked = 1 << 40
