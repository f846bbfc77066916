// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	formFrame = 64 << 10 // bytes of a form beside its file
	maxParts  = 10       // before the file
)

// Upload returns a body of at most most bytes that is read whole: the raw body, or the part of a form that has a name. Each
// byte takes cost bytes of the call's room while what came is worked on.
func (c *Call) Upload(ctx context.Context, part string, most, cost int64) ([]byte, error) {
	if enc := c.R.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, "the body is encoded as %q; it is sent as it is", sandbox.Clip(enc, 40)).WithRemedy("send it without the header Content-Encoding"))
	}
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	form := err == nil && media == formType
	bound := most
	if form {
		bound += formFrame
	}
	size := c.R.ContentLength
	if size > bound {
		return nil, guard.TooLarge(most)
	}
	if size < 0 {
		size = bound
	}
	if err := c.Reserve(ctx, cost*size); err != nil {
		return nil, err
	}
	var body io.Reader = http.MaxBytesReader(nil, c.R.Body, bound)
	if form {
		if body, err = formPart(body, params["boundary"], part); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(io.LimitReader(body, most+1))
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, guard.TooLarge(tooBig.Limit)
	}
	if err == nil && int64(b.Len()) > most {
		return nil, guard.TooLarge(most)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Malformed, err, "the body cannot be read to its end")
	}
	return b.Bytes(), nil
}

// formPart returns the part of a form that has a name.
func formPart(body io.Reader, boundary, name string) (io.Reader, error) {
	r := multipart.NewReader(body, boundary)
	for range maxParts {
		p, err := r.NextRawPart()
		if err != nil {
			return nil, fault.Wrap(fault.Malformed, err, "the form has no part named %s", name).WithRemedy("send it as the body, or a form with it as the part %s", name)
		}
		if p.FormName() == name {
			return p, nil
		}
	}
	return nil, fault.New(fault.Malformed, "the form has no part named %s among its first %d", name, maxParts).WithRemedy("send it as the body")
}
