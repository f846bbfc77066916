// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// plain returns the body of a request as it was before it was compressed, and its size, -1 where that is not
// known. What it becomes is for the caller to bound: a few bytes of gzip can be a thousand times as many.
func plain(r *http.Request) (io.ReadCloser, int64, error) {
	switch enc := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return r.Body, r.ContentLength, nil
	case "gzip", "x-gzip":
		return &unzipped{body: r.Body}, -1, nil
	default:
		return nil, 0, guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, "the body is encoded as %q; gzip alone is undone here", sandbox.Clip(enc, 40)).
				WithRemedy("send it without the header Content-Encoding to have it stored as it is"))
	}
}

// unzipped reads a body of gzip. Its beginning is read with the first Read, and not before.
type unzipped struct {
	body io.ReadCloser
	from *gzip.Reader
}

func (u *unzipped) Read(p []byte) (int, error) {
	var err error
	if u.from == nil {
		if u.from, err = gzip.NewReader(u.body); err != nil {
			if err == io.EOF { // else an empty body would be an empty file
				err = io.ErrUnexpectedEOF
			}
			return 0, notGzip(err)
		}
	}
	n, err := u.from.Read(p)
	return n, notGzip(err)
}

func (u *unzipped) Close() error { return u.body.Close() }

// notGzip says of an error whether the bytes were at fault.
func notGzip(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Malformed, "the body is not gzip, or not all of it: %v", err).WithRemedy("send it again; nothing of it was stored")
	}
	return err
}

// Files of such sizes are compressed for who asks for it. Smaller ones do not gain, and larger ones come faster as they are.
const (
	zipLeast = 1 << 10
	zipMost  = 64 << 20
)

// takesGzip reports whether a request asks for gzip.
func takesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(one, ";")
			if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && !strings.EqualFold(name, "x-gzip") {
				continue
			}
			weight, given := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			return !given || err == nil && q > 0
		}
	}
	return false
}

// sendZipped answers with a whole file in gzip. The file may change under it: if it has not the bytes that it had, the
// connection is cut.
func sendZipped(w io.Writer, body io.Reader, size int64) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	n, err := io.CopyN(zip, body, size)
	if n < size {
		return fault.Wrap(fault.Unavailable, err, "the file ended after %d of %d bytes", n, size)
	}
	return zip.Close()
}
