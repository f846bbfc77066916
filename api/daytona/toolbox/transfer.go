// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
	"strconv"
	"strings"

	"sandpit.dev/api/daytona/problem"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxParts = 10_000  // of one form
	maxField = 8 << 10 // bytes of a field with a path
	maxPaths = 1_000   // of one download
)

// parts reads the parts of a form, one at a time.
func parts(c *httpapi.Call) (*multipart.Reader, error) {
	media, params, err := mime.ParseMediaType(c.R.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, guard.WithStatus(http.StatusBadRequest, fault.New(fault.Malformed, "the body is not multipart/form-data: its type is %q", sandbox.Clip(c.R.Header.Get("Content-Type"), 80)))
	}
	return multipart.NewReader(c.R.Body, params["boundary"]), nil
}

// upload writes the files of a form: of each the field files[i].path, and then files[i].file. A file's name in the form is
// not where it goes.
func (a *API) upload(ctx context.Context, c *httpapi.Call, in *byRef) error {
	form, err := parts(c)
	if err != nil {
		return err
	}
	paths := make(map[string]string)
	written := 0
	for n := 0; ; n++ {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return malformedForm(err)
		}
		if n == maxParts {
			return fault.New(fault.TooLarge, "the form has more than %d parts", maxParts)
		}
		of, what, ok := strings.Cut(p.FormName(), "].")
		index, isFile := strings.CutPrefix(of, "files[")
		switch {
		case !ok || !isFile || what != "path" && what != "file":
			return fault.InvalidField(sandbox.Clip(p.FormName(), 80), "is not a part of this form, which has files[0].path and files[0].file")
		case what == "path":
			b, err := io.ReadAll(io.LimitReader(p, maxField+1))
			if err != nil {
				return malformedForm(err)
			}
			if len(b) == 0 || len(b) > maxField {
				return fault.InvalidField(p.FormName(), "has %d bytes, outside 1 to %d", len(b), maxField).WithReason(wire.CodeInvalidFilePath)
			}
			paths[index] = string(b)
		default:
			to, ok := paths[index]
			if !ok {
				return fault.InvalidField("files["+sandbox.Clip(index, 20)+"].path", "is missing before its file").WithReason(wire.CodeInvalidFilePath)
			}
			delete(paths, index)
			if _, _, err := a.Files.WriteFile(ctx, c.Caller, in.Ref, to, formFile{p}, sandbox.WriteFileOptions{Size: -1, MakeParents: true}); err != nil {
				return err
			}
			written++
		}
	}
	if written == 0 {
		return fault.New(fault.Invalid, "the form has no file").WithRemedy("send files[0].path and files[0].file")
	}
	c.W.WriteHeader(http.StatusOK)
	return nil
}

// formFile is a file of a form. Reading it fails where the form was cut off.
type formFile struct{ r io.Reader }

func (f formFile) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = malformedForm(err)
	}
	return n, err
}

func malformedForm(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return fault.Wrap(fault.Malformed, err, "the form cannot be read: it ended before its last boundary, or is none")
}

// uploadOne writes the one file of a form.
func (a *API) uploadOne(ctx context.Context, c *httpapi.Call, in *byPath) error {
	to, err := in.place()
	if err != nil {
		return err
	}
	form, err := parts(c)
	if err != nil {
		return err
	}
	p, err := form.NextPart()
	if err != nil {
		return malformedForm(err)
	}
	if p.FormName() != "file" {
		return fault.InvalidField(sandbox.Clip(p.FormName(), 80), "is not a part of this form, which has file")
	}
	f, _, err := a.Files.WriteFile(ctx, c.Caller, in.Ref, to, formFile{p}, sandbox.WriteFileOptions{Size: -1, MakeParents: true})
	if err != nil {
		return err
	}
	return c.Answer(wire.Uploaded{Name: path.Base(f.Path), Path: f.Path, Type: "file"})
}

type download struct {
	Ref  string `path:"id"`
	Body wire.Paths
}

// download answers with a form of one part per path: file with its bytes, or error with what was wrong.
func (a *API) download(ctx context.Context, c *httpapi.Call, in *download) error {
	if n := len(in.Body.Paths); n == 0 || n > maxPaths {
		return fault.InvalidField("paths", "has %d paths, outside 1 to %d", n, maxPaths)
	}
	if _, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref); err != nil { // a part cannot say so
		return err
	}
	out := c.StallWriter()
	defer out.Close()
	form := multipart.NewWriter(out)
	c.W.Header().Set("Content-Type", form.FormDataContentType())
	c.W.WriteHeader(http.StatusOK)
	for _, p := range in.Body.Paths {
		if err := a.part(ctx, c, form, in.Ref, p); err != nil {
			return err // the connection is cut: clients see that the last boundary is missing
		}
	}
	return form.Close()
}

// part writes a file into a form, or the reason why it cannot be read. It returns an error where the part was begun and cannot be
// completed.
func (a *API) part(ctx context.Context, c *httpapi.Call, form *multipart.Writer, ref, p string) error {
	info, body, err := a.Files.ReadFile(ctx, c.Caller, ref, p, sandbox.ReadFileOptions{})
	if err != nil {
		text, merr := json.Marshal(problem.Of(c.R, fileError(httpapi.Cause(ctx, err))))
		if merr != nil {
			return merr
		}
		w, err := form.CreatePart(head("error", p, "application/json", int64(len(text))))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	defer body.Close()
	w, err := form.CreatePart(head("file", p, "application/octet-stream", info.Size))
	if err != nil {
		return err
	}
	n, err := io.Copy(w, body)
	if err == nil && n != info.Size {
		err = fault.New(fault.Conflict, "%s had %d bytes, and %d when it was read", sandbox.Clip(p, 80), info.Size, n)
	}
	return err
}

// head returns the header of a part of a form.
func head(name, file, media string, size int64) textproto.MIMEHeader {
	quote := strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "%0D", "\n", "%0A").Replace
	return textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"; filename="%s"`, name, quote(file))},
		"Content-Type":        {media},
		"Content-Length":      {strconv.FormatInt(size, 10)},
	}
}

func (a *API) downloadOne(ctx context.Context, c *httpapi.Call, in *byPath) error {
	p, err := in.place()
	if err != nil {
		return err
	}
	info, body, err := a.Files.ReadFile(ctx, c.Caller, in.Ref, p, sandbox.ReadFileOptions{})
	if err != nil {
		return err
	}
	defer body.Close()
	h := c.W.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(info.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(p)}))
	h.Set("Content-Security-Policy", "sandbox")
	c.W.WriteHeader(http.StatusOK)
	if c.R.Method == http.MethodHead {
		return nil
	}
	out := c.StallWriter()
	defer out.Close()
	_, err = io.Copy(out, body)
	return err
}
