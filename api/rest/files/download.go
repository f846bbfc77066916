// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mediatype"
	"sandpit.dev/sandbox"
)

// readFile sends a file raw, or lists a directory.
func (a *API) readFile(ctx context.Context, c *httpapi.Call, in *target) error {
	optional := in.Route == "" // …/files/ is the workspace
	p, err := httpapi.Place(in.Route, in.Path, optional)
	if err != nil {
		return err
	}
	user := httpapi.Given(in.User)
	if c.R.Method == http.MethodHead {
		return a.headFile(ctx, c, in.Ref, p, user)
	}
	err = a.sendFile(ctx, c, in.Ref, p, user)
	if maybeOther(err) {
		if lerr := a.list(ctx, c, in.Ref, p, sandbox.ListFilesOptions{User: user, Limit: defaultEntries}, false); !maybeOther(lerr) {
			return lerr
		}
	}
	return err
}

// sendFile answers with a file, or the part of it that is wanted.
func (a *API) sendFile(ctx context.Context, c *httpapi.Call, ref, p, user string) error {
	part, err := a.wanted(ctx, c, ref, p, user)
	if err != nil {
		return err
	}
	info, body, err := a.Files.ReadFile(ctx, c.Caller, ref, p, sandbox.ReadFileOptions{User: user, Offset: part.offset, Length: part.length, Version: true})
	if err != nil {
		return byUser(err)
	}
	defer body.Close()
	tag := describe(c.W.Header(), p, info)
	c.W.Header().Set("Vary", "Accept-Encoding")
	if known := c.R.Header.Get("If-None-Match"); matches(known, tag) || matches(known, zippedTag(tag)) {
		c.W.Header().Del("Content-Type")
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	return a.send(c, info, body, part)
}

// headFile tells about a file without its bytes. A link is opened, for only
// that tells what it leads to.
func (a *API) headFile(ctx context.Context, c *httpapi.Call, ref, p, user string) error {
	info, err := a.Files.StatFile(ctx, c.Caller, ref, p, user)
	if err != nil {
		return byUser(err)
	}
	if info.Type == sandbox.Symlink {
		linked, body, err := a.Files.ReadFile(ctx, c.Caller, ref, p, sandbox.ReadFileOptions{User: user, Length: 1, Version: true})
		switch {
		case err == nil:
			_ = body.Close() // nothing was read
			info = linked
		case maybeOther(err):
			info.Type = sandbox.Directory
		default:
			return err
		}
	}
	switch info.Type {
	case sandbox.Directory:
		c.W.Header().Set("Sandpit-File-Type", "dir")
		c.W.Header().Set("Content-Type", "application/json")
	case sandbox.RegularFile:
		describe(c.W.Header(), p, info)
		c.W.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
	default:
		return fault.InvalidField("path", "%q is neither a file nor a directory", sandbox.Clip(p, 80))
	}
	c.W.WriteHeader(http.StatusOK)
	return nil
}

// section is a part of a file; zero is all of it.
type section struct {
	asked          bool
	offset, length int64
}

// wanted reads the header Range. One range is served; what is no range of bytes,
// or several of them, is answered with the whole file, as HTTP allows.
func (a *API) wanted(ctx context.Context, c *httpapi.Call, ref, p, user string) (section, error) {
	spec, ok := strings.CutPrefix(c.R.Header.Get("Range"), "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return section{}, nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	if !ok {
		return section{}, nil
	}
	from, err1 := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	condition := c.R.Header.Get("If-Range")
	if first != "" && condition == "" {
		switch {
		case err1 != nil || from < 0 || last != "" && (err2 != nil || to < from):
			return section{}, nil
		case last == "":
			return section{asked: true, offset: from}, nil
		}
		return section{asked: true, offset: from, length: to - from + 1}, nil
	}
	// The rest needs to know the file first. A link is not followed by that, so
	// it is answered whole.
	info, err := a.Files.StatFile(ctx, c.Caller, ref, p, user)
	if err != nil {
		return section{}, err
	}
	switch {
	case info.Type != sandbox.RegularFile, condition != "" && (info.Version == "" || condition != tagOf(info)):
		return section{}, nil
	case first == "" && (err2 != nil || to <= 0):
		return section{}, nil
	case first == "":
		return section{asked: true, offset: max(info.Size-to, 0)}, nil
	case err1 != nil || from < 0 || last != "" && (err2 != nil || to < from):
		return section{}, nil
	case last == "":
		return section{asked: true, offset: from}, nil
	}
	return section{asked: true, offset: from, length: to - from + 1}, nil
}

// send answers with a file's bytes. The file may change under it: what was
// promised in Content-Length is sent, or the connection is cut.
func (a *API) send(c *httpapi.Call, info sandbox.FileInfo, body io.Reader, part section) error {
	h := c.W.Header()
	size := info.Size
	status := http.StatusOK
	if part.asked {
		if part.offset >= info.Size {
			h.Set("Content-Range", "bytes */"+strconv.FormatInt(info.Size, 10))
			return guard.WithStatus(http.StatusRequestedRangeNotSatisfiable,
				fault.New(fault.Invalid, "the range begins at byte %d; the file has %d bytes", part.offset, info.Size))
		}
		size -= part.offset
		if part.length > 0 {
			size = min(size, part.length)
		}
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.offset, part.offset+size-1, info.Size))
	}
	if !part.asked && takesGzip(c.R) && size >= zipLeast && size <= zipMost {
		h.Set("Content-Encoding", "gzip")
		h.Set("Etag", zippedTag(tagOf(info)))
		c.W.WriteHeader(status)
		w := c.StallWriter()
		defer w.Close()
		return sendZipped(w, body, size)
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	c.W.WriteHeader(status)
	w := c.StallWriter()
	defer w.Close()
	n, err := io.CopyN(w, body, size)
	if n < size {
		return fault.Wrap(fault.Unavailable, err, "the file ended after %d of %d bytes", n, size)
	}
	return nil
}

// describe sets the headers that tell what a file is. What it holds was written
// by code that nobody trusts, and a browser would run a page or a picture with a
// script in it as ours: so nothing is shown but kinds that cannot have scripts,
// and even those without any rights.
func describe(h http.Header, p string, f sandbox.FileInfo) (tag string) {
	kind, show := mediatype.Of(p)
	h.Set("Content-Type", kind)
	if !show {
		h.Set("Content-Disposition", "attachment")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Last-Modified", f.ModTime.UTC().Format(http.TimeFormat))
	tag = tagOf(f)
	h.Set("Etag", tag)
	return tag
}
